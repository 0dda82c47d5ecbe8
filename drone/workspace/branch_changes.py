"""What happened on the remote to the branch of the session's last work since the fleet last wrote it.

Users may commit to it, rewrite it or delete it. Commits on top are taken over by the next turn; see
docs/decisions/0017-take-over.md for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from drone.workspace.mirror import Advertised, Mirror
from shared import names
from shared.redaction import cut_short
from shared.visible_text import visible
from shared.work_order import WorkOrder

_SHOWN = 10
"""Commits that are named by their subjects."""
_SUBJECT = 100
"""Characters of a subject."""


@dataclass(frozen=True)
class BranchChange:
    """The branch is no longer where the session's last turn left it."""

    kind: Literal["ahead", "diverged", "deleted"]
    """`ahead`: there are commits on top. `diverged`: some of the fleet's commits are no longer on it."""
    branch: str
    left_at: str
    """The commit of the last turn; if the branch was deleted, the newest one that the fleet has of it."""
    tip: str | None = None
    """The branch's commit now; None if it was deleted."""
    added: int = 0
    """Commits that the last turn did not have; 0 if it began from them without adding any."""
    subjects: tuple[str, ...] = ()
    """Of the newest of them, newest first."""
    removed: int = 0
    """Commits of the last turn that are no longer on the branch."""

    @property
    def for_users(self) -> str:
        """One or two sentences for the order's page; empty if the last turn has said it."""
        match self.kind:
            case "ahead" if self.added == 0:
                return ""
            case "ahead":
                return f"Continues from {_commits(self.added)} that users pushed to {self.branch}{self._named}."
            case "diverged":
                return f"Continues from {self.branch} as it is now, although {self.why}."
            case "deleted":
                return (
                    f"The branch {self.branch} no longer exists in the repository. This turn continues from its last "
                    f"known commit {self.left_at[:12]}, which the fleet has kept."
                )

    @property
    def for_model(self) -> str:
        """The same for the agent, with the subjects as a list."""
        listed = "".join(f"\n- {subject}" for subject in self.subjects)
        more = f"\n- and {self.added - len(self.subjects)} more" if self.added > len(self.subjects) else ""
        match self.kind:
            case "ahead" if self.added == 0:
                return ""
            case "ahead":
                return (
                    f"Since the last turn, the user committed {_commits(self.added)} to the branch {self.branch}. The "
                    f"workspace has them; keep what they change unless you are told otherwise:{listed}{more}"
                )
            case "diverged":
                new = f" It has {_commits(self.added)} that you have not seen:{listed}{more}" if self.added else ""
                return (
                    f"Since the last turn, the user rewrote the branch {self.branch}, which no longer has "
                    f"{_commits(self.removed)} of your work. The workspace is as the branch is now; do not restore "
                    f"what was removed.{new}"
                )
            case "deleted":
                return (
                    f"Since the last turn, the branch {self.branch} was deleted from the repository. The workspace "
                    "has your last commit."
                )

    @property
    def why(self) -> str:
        """How the two sides differ, as a part of a sentence."""
        new = f", and has {_commits(self.added)} that the last turn did not have{self._named}" if self.added else ""
        return (
            f"the branch {self.branch} was rewritten: it no longer has {_commits(self.removed)} of the last turn "
            f"({self.left_at[:12]}){new}"
        )

    @property
    def _named(self) -> str:
        return f": {'; '.join(self.subjects)}" if self.subjects else ""


def find_change(order: WorkOrder, mirror: Mirror, advertised: Advertised) -> BranchChange | None:
    """Compare the branch of the order's base with where the fleet left it; None if nothing happened to it.

    The mirror has the base commit; afterwards, it also has the branch's. Raises GitFailed.
    """
    base = order.base
    name = base.branch or base.unpushed_branch
    if base.commit is None or name is None:
        return None
    if name not in advertised.branches:
        return _if_deleted(order, mirror, advertised)
    if advertised.branches[name] == base.commit:
        return None
    into = f"base/{order.session.id}"
    mirror.fetch_branch(name, into)
    return _compared(order, mirror, name, mirror.own_ref(into))


def _if_deleted(order: WorkOrder, mirror: Mirror, advertised: Advertised) -> BranchChange | None:
    """The branch is gone. That says nothing if it was never there, or if its work is on another branch."""
    commit, name = order.base.commit or "", order.base.branch
    if name is None or (advertised.head and mirror.is_ancestor(commit, advertised.head)):
        return None
    seen = order.base.seen
    return BranchChange("deleted", name, seen if seen and mirror.has(seen) else commit)


def _compared(order: WorkOrder, mirror: Mirror, name: str, tip: str) -> BranchChange | None:
    base = order.base
    commit = base.commit or ""
    # The last turn may have begun from commits of users without adding any: it knows these.
    for known in filter(None, (base.seen, commit)):
        if mirror.has(known) and mirror.is_ancestor(known, tip):
            added, subjects = _log(mirror, known, tip)
            return BranchChange("ahead", name, commit, tip, added, subjects) if tip != commit else None
    if base.branch is None and mirror.made_for_order(tip, name.removeprefix(names.branch(""))):
        # An earlier run of that order pushed it, and the last one could not.
        return None
    added, subjects = _log(mirror, commit, tip)
    removed, _ = _log(mirror, tip, commit)
    return BranchChange("diverged", name, commit, tip, added, subjects, removed)


def _log(mirror: Mirror, since: str, until: str) -> tuple[int, tuple[str, ...]]:
    count, subjects = mirror.commits_between(since, until, _SHOWN)
    return count, tuple(cut_short(visible(each), _SUBJECT) for each in subjects)


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"
