"""What an order starts from: the tip of a branch, the head of its session's last work, or an empty repository."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from drone.workspace.branch_changes import BranchChange, find_change
from drone.workspace.git import GitFailed
from drone.workspace.merging import Merge, has_conflicts
from drone.workspace.mirror import Advertised, Mirror
from shared.errors import FleetFault, NotFound, OrderError
from shared.work_order import Base, WorkOrder

AcceptBranch = Callable[[BranchChange], None]
"""Returns if work may continue from a branch that was rewritten, else raises."""
FetchBlob = Callable[[str, str], bytes]
"""Returns the content of a blob, by run and SHA-256."""
_USUAL = ("main", "master", "trunk", "develop")


@dataclass(frozen=True)
class StartingPoint:
    """The commit to start from, and its related names."""

    commit: str | None
    """None in an empty repository."""
    branch: str
    """The name of the workspace's own branch."""
    default_branch: str | None
    default_commit: str | None
    published: str | None = None
    """The remote's own tip, which every other drone can fetch."""
    change: BranchChange | None = None
    """What happened to the branch of the session's last work."""
    merges: tuple[Merge, ...] = ()
    """The work of other orders that the commit contains."""
    merged_into: str | None = None
    """What that work was merged into, if anything came of it that has no conflicts: a result even without a change."""


def refuse_rewritten(change: BranchChange, decision: str = "") -> None:
    """Raise OrderError: the session's last work and its branch have diverged, and no user chose one of them."""
    raise OrderError(
        f"the branch {change.branch} and the work of the session's last turn have diverged",
        code="E-BRANCH-DIVERGED",
        why=f"{change.why}{decision}",
        next="fleet retry ORDER    then: fleet approve ORDER    to continue from the last turn instead, first: "
        f"git push --force origin {change.left_at}:refs/heads/{change.branch}",
    )


def find_base(
    order: WorkOrder,
    mirror: Mirror,
    advertised: Advertised,
    fetch_blob: FetchBlob,
    accept: AcceptBranch = refuse_rewritten,
) -> StartingPoint:
    """Decide where an order starts, and ensure that the mirror has the commit.

    Commits of users on the branch of the session's last work are taken over. If the branch was rewritten, `accept` is
    called, and may raise.

    Raises OrderError if the project's branch does not exist, FleetFault if the work of the session's last order is
    unavailable.
    """
    default, default_commit = default_of(advertised)
    branch = order.project.branch or default or _USUAL[0]
    sources = CommitSources(order.session.id, mirror, fetch_blob)
    if order.resumed:
        base, tip = order.resumed.base, advertised.branches.get(branch, advertised.head)
        if base is not None:
            sources.ensure_again(base, order)
        start = StartingPoint(base, branch, default, default_commit, _published(mirror, base, tip))
        return _with_first_merges(order, sources, start)
    tip = _tip(order, advertised, default)
    if order.base.commit is None:
        return _with_merges(order, sources, StartingPoint(tip, branch, default, default_commit, tip))
    if order.base.given:
        sources.ensure_given(order.base.commit)
        published = _published(mirror, order.base.commit, tip)
        start = StartingPoint(order.base.commit, branch, default, default_commit, published)
        return _with_merges(order, sources, start)
    sources.ensure(order.base)
    change = find_change(order, mirror, advertised)
    if change is not None and change.kind == "diverged":
        accept(change)
    start = StartingPoint(_commit_of(order, change), branch, default, default_commit, tip, change)
    return _with_merges(order, sources, start)


def _with_merges(order: WorkOrder, sources: CommitSources, start: StartingPoint) -> StartingPoint:
    """The starting point with the work of other orders merged into it, one after the other."""
    merges = sources.merged(start.commit, order)
    return _merged(replace(start, commit=merges[-1].commit), start.commit, merges) if merges else start


def _merged(start: StartingPoint, before: str | None, merges: tuple[Merge, ...]) -> StartingPoint:
    """The starting point that came of merging into `before`."""
    as_before = not merges or start.commit == before or has_conflicts(merges)
    return replace(start, merges=merges, merged_into=None if as_before else before)


def _with_first_merges(order: WorkOrder, sources: CommitSources, start: StartingPoint) -> StartingPoint:
    """The starting point of a resumed order with the merges that made it; with none if their commits are unavailable.

    What was merged into may have been a commit of a user, which only the merge names now: its first parent.
    """
    if start.commit is None or not order.merges:
        return start
    try:
        line = sources.mirror.first_parents(start.commit, len(order.merges))
        for before in filter(sources.mirror.has, (order.base.commit or "", *line)):
            merges = sources.merged(before, order)
            if merges[-1].commit == start.commit:
                return _merged(start, before, merges)
    except FleetFault:
        pass  # what was merged is not needed to continue
    return start


def _commit_of(order: WorkOrder, change: BranchChange | None) -> str | None:
    """The branch's tip; without the branch, the newest commit that the fleet has of it."""
    return order.base.commit if change is None else change.tip or change.left_at


def default_of(advertised: Advertised) -> tuple[str | None, str | None]:
    """Name and commit of the remote's default branch; both None if it is empty, or HEAD names a branch of the fleet."""
    default = _default_branch(advertised)
    return default, advertised.branches.get(default or "", None if advertised.head_is_own else advertised.head)


def _default_branch(advertised: Advertised) -> str | None:
    """Where the remote's HEAD points; if that does not exist, the only branch, or one with a usual name."""
    branches = [name for name in advertised.branches if not name.startswith(("fleet/", "fleet-late/"))]
    if advertised.head_ref and (named := advertised.head_ref.removeprefix("refs/heads/")) in branches:
        return named
    if advertised.head or len(branches) == 1:
        same = [name for name in branches if advertised.head in (None, advertised.branches[name])]
        return same[0] if same else None
    return next((name for name in _USUAL if name in branches), None)


def _tip(order: WorkOrder, advertised: Advertised, default: str | None) -> str | None:
    """The commit of the project's branch; if it is not there yet, or not needed because of a base, that of HEAD.

    Raises OrderError if the order needs the branch and it does not exist.
    """
    wanted, branches = order.project.branch, advertised.branches
    tip = branches.get(wanted or default or "", None if wanted else advertised.head)
    if tip is not None:
        return tip
    if advertised.is_empty or order.base.commit is not None:
        return advertised.head
    raise _no_branch(order, wanted or "", branches)


def _no_branch(order: WorkOrder, wanted: str, branches: dict[str, str]) -> OrderError:
    close = get_close_matches(wanted, branches, n=5, cutoff=0.4) or sorted(branches)[:5]
    what = (
        f'the repository has no branch "{wanted}"'
        if wanted
        else "the repository's HEAD does not name an existing branch"
    )
    return OrderError(
        what,
        code="E-GIT-BRANCH",
        why=f"existing branches: {', '.join(close) or 'none'}",
        next=f"fleet project edit {order.project.slug} --branch {close[0] if close else 'BRANCH'}",
    )


@dataclass(frozen=True)
class CommitSources:
    """Where the commits that an order starts from may come from."""

    session_id: str
    mirror: Mirror
    fetch_blob: FetchBlob

    def ensure(self, base: Base) -> None:
        """Ensure that the mirror has the base's commit: it is there already, on the remote, or in a stored bundle.

        Raises FleetFault if it is unavailable.
        """
        commit = base.commit or ""
        sources = (lambda: self._from_branch(base), lambda: self._from_bundle(base.bundle_run, base.bundle))
        if self._found(commit, *sources):
            return
        raise FleetFault(
            f"the work that this order continues from ({commit[:12]}) is unavailable",
            code="E-GIT-BASE",
            why=f"neither the branch {base.branch or '(none)'} nor a stored bundle has the commit",
            next="start a new session, or submit the order again: fleet submit PROMPT --project SLUG",
        )

    def ensure_given(self, commit: str) -> None:
        """The same for a commit that a user named, which the remote must have. Raises OrderError."""
        if self._found(commit, lambda: self._by_name(commit)):
            return
        raise OrderError(
            f"the repository has no commit {commit}",
            code="E-GIT-COMMIT",
            why="no branch contains it, and the remote does not serve it by its id",
            next=f"git push origin {commit}:refs/heads/BRANCH    then: fleet retry ORDER",
        )

    def merged(self, commit: str | None, order: WorkOrder) -> tuple[Merge, ...]:
        """Merge what the order names into a commit; None: an empty repository. Raises OrderError and FleetFault."""
        merges: list[Merge] = []
        for upstream in order.merges:
            self.ensure(upstream.base)
            theirs = upstream.base.commit or ""
            source = f"branch {upstream.branch}" if upstream.branch else f"order {upstream.order}"
            merges.append(self.mirror.merge(commit or theirs, theirs, source, order.submitted_at))
            commit = merges[-1].commit
        return tuple(merges)

    def ensure_again(self, base: str, order: WorkOrder) -> None:
        """The same for the commit that a resumed order began from. Raises FleetFault."""
        resumed, own = order.resumed, order.base
        if self._found(
            base,
            lambda: self._by_name(base),
            lambda: self._from_branch(own),
            lambda: self._from_bundle(own.bundle_run, own.bundle),
            # What was merged for the order is on no remote, but in the checkpoint.
            lambda: self._from_bundle(resumed.bundle_run, resumed.bundle) if resumed else None,
            # Repeated, the merges give the same commits, if they go into the same one.
            lambda: self.merged(own.commit, order),
            lambda: self.merged(self._tip_of(own), order),
        ):
            return
        raise FleetFault(
            f"the commit {base[:12]} that this order started from is no longer available",
            code="E-CHECKPOINT",
            why="no branch of the remote contains it, and the remote does not serve it by its id",
            next="fleet retry ORDER",
        )

    def _found(self, commit: str, *attempts: Callable[[], object]) -> bool:
        """Whether the mirror has the commit, after as many attempts as it takes."""
        if self.mirror.has(commit):
            return True
        for attempt in attempts:
            try:
                attempt()
            except (GitFailed, FleetFault, NotFound):
                continue  # the next source may still have it; the caller's error names the commit
            if self.mirror.has(commit):
                return True
        return False

    def _by_name(self, commit: str) -> None:
        self.mirror.fetch_commit(commit, f"base/{self.session_id}")

    def _from_branch(self, base: Base) -> None:
        if base.branch:
            self.mirror.fetch_branch(base.branch, f"base/{self.session_id}")

    def _from_bundle(self, run: str | None, sha256: str | None) -> None:
        if not (run and sha256):
            return
        content = self.fetch_blob(run, sha256)
        with tempfile.TemporaryDirectory(prefix="drone-") as directory:
            bundle = Path(directory, "base.bundle")
            bundle.write_bytes(content)
            self.mirror.add_bundle(bundle)

    def _tip_of(self, base: Base) -> str:
        """The commit that the base's branch has on the remote now. Raises GitFailed."""
        into = f"base/{self.session_id}"
        self.mirror.fetch_branch(base.branch or base.unpushed_branch or "", into)
        return self.mirror.own_ref(into)


def _published(mirror: Mirror, base: str | None, tip: str | None) -> str | None:
    """What a bundle may build on: the remote's tip, or a branch that has the base if the tip's history does not.

    If no branch has it any more, the bundle holds everything that the tip does not have.
    """
    if base is None or tip is None or mirror.is_ancestor(base, tip):
        return tip
    return mirror.branch_with(base) or tip
