"""A bare mirror for each repository: fetched under a kernel lock, and all its workspaces borrow its objects.

Its objects are never pruned and never repacked away automatically: a workspace that borrows them would break. All of it
is removed when it was not used for long and no workspace borrows from it (`drone.workspace.cleaning`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from drone.sandbox.trees import remove
from drone.workspace.authorship import is_by_order
from drone.workspace.bundles import read_bundle
from drone.workspace.failures import NO_HOST, NOT_FOUND, explain, explained
from drone.workspace.git import Git, GitFailed
from drone.workspace.locks import Busy, held
from drone.workspace.merging import Merge, merge
from drone.workspace.remote import Remote
from shared.errors import FleetFault, OrderError

LOOK_SECONDS = 60.0
FETCH_SECONDS = 1800.0
NAME_SECONDS = 2.0
"""After which an unknown name is looked up once more."""
ACCEPTED_SECONDS = 86_400.0
"""For so long, a login that the remote accepted opens the mirror without it; the host may have revoked it meanwhile."""
OWN_REFS = "refs/dronefleet"
"""The drone's own refs in a mirror, besides the remote's own branches and tags."""
_REFS_FILE = "dronefleet-refs"
_LOGINS = "dronefleet-logins"
"""Has an empty file for each login that the remote accepted, written when it last did."""
_TICK = 0.1
_OWN_BRANCHES = ("refs/heads/fleet/", "refs/heads/fleet-late/")
_REFSPECS = (
    "+refs/heads/*:refs/heads/*",
    "+refs/tags/*:refs/tags/*",
    # Results of other orders: there may be thousands. The one that an order starts from is fetched by name.
    "^refs/heads/fleet/*",
    "^refs/heads/fleet-late/*",
)


@dataclass(frozen=True)
class Advertised:
    """The refs of a remote with their commits, and where its HEAD points."""

    refs: dict[str, str]
    head: str | None = None
    """The commit; None in an empty repository, or if HEAD names a branch that does not exist."""
    head_ref: str | None = None

    @property
    def branches(self) -> dict[str, str]:
        return {
            name.removeprefix("refs/heads/"): at for name, at in self.refs.items() if name.startswith("refs/heads/")
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in the repository but the fleet's own branches."""
        return not self._others

    @property
    def head_is_own(self) -> bool:
        """Whether HEAD names a branch of the fleet: code hosts let it name the first branch that is pushed."""
        return (self.head_ref or "").startswith(_OWN_BRANCHES)

    @property
    def object_format(self) -> str:
        return "sha256" if any(len(commit) == 64 for commit in self.refs.values()) else "sha1"

    @property
    def listed(self) -> str:
        """Changes whenever something would have to be fetched."""
        return "".join(f"{at} {name}\n" for name, at in [("HEAD", self.head), *sorted(self._others.items())] if at)

    @property
    def _others(self) -> dict[str, str]:
        """The refs without the fleet's own branches."""
        return {name: at for name, at in self.refs.items() if not name.startswith(_OWN_BRANCHES)}


class Mirror:
    """The mirror of one remote."""

    def __init__(self, directory: Path, remote: Remote, git: Git) -> None:
        self.directory = directory
        self.remote = remote
        self._git = git.at(directory).adding(remote.login)
        self._lock = directory.with_suffix(".lock")
        self.cloned_s: float | None = None
        """How long this object fetched what was a new mirror; None: it was there already."""

    def uninterrupted(self) -> Mirror:
        """The same mirror without a check: for work that is delivered also by a run that is to end."""
        return Mirror(self.directory, self.remote, self._git.uninterrupted())

    @property
    def objects(self) -> Path:
        return self.directory / "objects"

    @cached_property
    def object_format(self) -> str:
        """`sha1` or `sha256`."""
        return self._git.text("rev-parse", "--show-object-format")

    def has(self, commit: str) -> bool:
        """Whether a commit is here."""
        return self._git.has(commit)

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self._git.is_ancestor(older, newer)

    def refresh(self) -> Advertised:
        """Update the mirror to what the remote has now, and return what that is.

        Asks the remote first, and fetches only if something changed: of twenty orders at once one fetches. Raises
        UnsuitableDrone if this drone will never reach the repository, FleetFault if it does not reach it now, or if
        the repository or its host is gone although it was there before.
        """
        try:
            with explained(self.remote):
                advertised = self.read_advertised()
                self._hold(lambda: self._fetch_if_changed(advertised))
            if advertised.refs:
                self.object_format = advertised.object_format  # git need not be started to tell
        except OrderError as error:
            if self.objects.is_dir() and error.code in {NOT_FOUND, NO_HOST}:
                raise _gone(error) from error
            raise
        return advertised

    def ensure(self, commit: str) -> None:
        """Ensure that a commit is here; the remote is asked if it is not, or did not accept this login within a day.

        Raises like `refresh`, and OrderError if the remote does not have it.
        """
        # Used from now on: a mirror that was not is removed, if no workspace borrows from it yet.
        self._hold(_nothing)
        # Other logins share the mirror: what it has may be of a repository that this one does not open.
        if self._is_accepted() and self.has(commit):
            return
        self.refresh()
        if not self.has(commit):
            try:
                self.fetch_commit(commit, "submodule")
            except GitFailed as failure:
                raise OrderError(
                    f"{self.remote.shown} has no commit {commit[:12]}",
                    code="E-GIT-COMMIT",
                    next="push the commit to that repository",
                ) from failure

    def fetch_branch(self, branch: str, into: str) -> None:
        """Fetch one branch into `refs/dronefleet/<into>`. Raises GitFailed if it is unavailable."""
        self._hold(lambda: self._fetch(self.remote.address, f"+refs/heads/{branch}:{OWN_REFS}/{into}"))

    def fetch_commit(self, commit: str, into: str) -> None:
        """Fetch a commit that may no longer be on any branch, which most servers allow. Raises GitFailed if not."""
        self._hold(lambda: self._fetch(self.remote.address, f"+{commit}:{OWN_REFS}/{into}"))

    def branch_with(self, commit: str) -> str | None:
        """The tip of a branch of the remote from which a commit can be reached; None if there is none."""
        options = ("--contains", commit, "--format=%(objectname)", "--count=1")
        return self._git.text("for-each-ref", *options, "refs/heads") or None

    def own_ref(self, into: str) -> str:
        """The commit that was last fetched into `refs/dronefleet/<into>`. Raises GitFailed."""
        return self._git.text("rev-parse", "--verify", f"{OWN_REFS}/{into}^{{commit}}")

    def commits_between(self, since: str, until: str, most: int) -> tuple[int, list[str]]:
        """How many commits `until` has that `since` has not, and the subjects of the `most` newest, newest first.

        Of a merge, the commits that it brought in are not counted. Raises GitFailed.
        """
        span = ("--first-parent", f"{since}..{until}")
        count = int(self._git.text("rev-list", "--count", *span))
        lines = self._git.text("log", "--format=%s", f"--max-count={most}", *span) if count else ""
        return count, lines.split("\n") if lines else []

    def first_parents(self, commit: str, most: int) -> list[str]:
        """Up to `most` ancestors of the commit along the first parents, oldest first, and the commit itself."""
        return self._git.text("rev-list", "--first-parent", "--reverse", f"--max-count={most + 1}", commit).split()

    def merge(self, base: str, theirs: str, source: str, at: datetime) -> Merge:
        """Merge the work of an order or a branch into `base`. Raises OrderError and GitFailed."""
        return merge(self._git, base, theirs, source, at)

    def made_for_order(self, commit: str, order_id: str) -> bool:
        """Whether a drone made the commit for this order. Raises GitFailed."""
        return is_by_order(self._git, commit, order_id)

    def add_bundle(self, bundle: Path) -> None:
        """Add the commits in a bundle. Raises GitFailed if it is damaged or builds on unknown commits."""
        self._hold(lambda: read_bundle(self._git, bundle))

    def read_advertised(self) -> Advertised:
        """Ask the remote for its refs, twice if its host is unknown. Raises GitFailed."""
        try:
            return self._list_refs()
        except GitFailed as failure:
            # One answer that a name is unknown may be a name server's that was just restarted.
            if explain(failure, self.remote).code != NO_HOST:
                raise
        self._pause(NAME_SECONDS)
        return self._list_refs()

    def _list_refs(self) -> Advertised:
        # git reads the configuration of the repository it runs in: that must be ours, or none.
        patterns = ("HEAD", "refs/heads/*", "refs/tags/*")
        listing = self._git.text("ls-remote", "--symref", "--", self.remote.address, *patterns, seconds=LOOK_SECONDS)
        return _advertised(listing)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._git.check()
            time.sleep(min(left, _TICK))

    def _fetch_if_changed(self, advertised: Advertised) -> None:
        began = time.monotonic()
        self._make(advertised.object_format)
        self._note_accepted()
        known = self.directory / _REFS_FILE
        is_new = not known.exists()
        if known.exists() and known.read_text() == advertised.listed:
            return
        if advertised.refs:
            head = [f"+HEAD:{OWN_REFS}/head"] if advertised.head else []
            self._fetch(self.remote.address, *_REFSPECS, *head)
        # Written last: after an interrupted fetch, everything is fetched again.
        known.write_text(advertised.listed)
        if is_new:
            self.cloned_s = time.monotonic() - began

    def _note_accepted(self) -> None:
        self._noted.parent.mkdir(exist_ok=True)
        self._noted.touch()

    def _is_accepted(self) -> bool:
        return self._noted.exists() and time.time() - self._noted.stat().st_mtime < ACCEPTED_SECONDS

    @cached_property
    def _noted(self) -> Path:
        return self.directory / _LOGINS / self.remote.login_digest

    def _fetch(self, address: str, *refspecs: str) -> None:
        """Let git fetch, while the lock is held."""
        self._remove_leftovers()
        self._git.text(
            *(
                "fetch",
                "-q",
                "--prune",
                "--no-tags",
                "--update-shallow",
                "--no-write-fetch-head",
                "--no-auto-maintenance",
            ),
            *("--", address, *refspecs),
            seconds=FETCH_SECONDS,
        )

    def _remove_leftovers(self) -> None:
        """Remove what a fetch left when it was killed: no one finishes its packs or releases its locks."""
        refs = self.directory / "refs"
        for leftover in [*(self.objects / "pack").glob("tmp_*"), *self.directory.glob("*.lock"), *refs.rglob("*.lock")]:
            leftover.unlink(missing_ok=True)

    def _make(self, object_format: str) -> None:
        """Make what is not there. It appears as a whole: half of one would fail every order after it."""
        if self.objects.is_dir():
            return
        draft = self.directory.with_name(f".{self.directory.name}.new")
        for left in (draft, self.directory):
            remove(left)
        draft.mkdir(parents=True)
        git = self._git.at(draft)
        git.text("init", "-q", "--bare", "--template=", f"--object-format={object_format}")
        git.text("config", "core.hooksPath", "/dev/null")
        draft.rename(self.directory)

    def _hold(self, action: Callable[[], object]) -> None:
        try:
            with held(self._lock, seconds=FETCH_SECONDS, check=self._git.check):
                # When it was used last decides how long it is kept.
                os.utime(self._lock)
                action()
        except Busy as error:
            raise FleetFault(
                f"the mirror of {self.remote.shown} is busy",
                code="E-GIT-MIRROR-BUSY",
                why=f"another run has been fetching it for {FETCH_SECONDS / 60:.0f} minutes",
                next="fleet retry ORDER",
            ) from error


def _nothing() -> None:
    """Only take the lock."""


def _advertised(listing: str) -> Advertised:
    """Read the lines of `git ls-remote --symref`: `ref: <ref>\\tHEAD` and `<commit>\\t<ref>`."""
    refs: dict[str, str] = {}
    head_ref = None
    for line in listing.split("\n"):
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            head_ref = value.removeprefix("ref: ")
        elif name == "HEAD" or name.startswith(("refs/heads/", "refs/tags/")):
            refs[name] = value
    head = refs.pop("HEAD", None)
    return Advertised({name: at for name, at in refs.items() if not name.endswith("^{}")}, head, head_ref)


def _gone(error: OrderError) -> FleetFault:
    """A server that is being moved or restored says "not found" for a while, as does a name server that is cut off;
    the order is then retried.
    """
    return FleetFault(
        "the repository can no longer be found; this may be temporary",
        code="E-GIT-GONE",
        why=error.what,
        next=error.next,
    )
