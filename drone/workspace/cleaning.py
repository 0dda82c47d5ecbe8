"""Removes workspaces and mirrors that were not used for long, and the oldest where room is needed.

A workspace in which a run works or that a run may still need stays, and a mirror from which a workspace borrows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from shutil import disk_usage

from drone.installation.disk import existing
from drone.installation.owner_rules.rules import KeepRules
from drone.installation.workspace_marker import WORKSPACE_MARKER
from drone.sandbox.trees import remove, walk
from drone.workspace.locks import Busy, FileLock
from shared.durations import kept_for

FREE_PART = 10
"""With less than a tenth of the disk free, the least recently used is removed early."""
LEAST_WORKSPACE = timedelta(days=7)
"""A run may resume in a workspace for so long."""
LEAST_MIRROR = timedelta(days=1)
"""Longer than any run may take from the fetch to the workspace that borrows."""
_REMOVING = ".removing-"


@dataclass(frozen=True)
class Stored:
    """A workspace or a mirror on disk."""

    path: Path
    lock: Path
    used_at: datetime

    @cached_property
    def bytes(self) -> int:
        """What it takes on the disk."""
        return size_of(self.path)


@dataclass
class Cleaning:
    """Workspaces and mirrors below one root, and which of them go."""

    root: Path
    rules: KeepRules
    now: datetime
    needed: Collection[str] = ()
    """Orders whose runs are not confirmed: their workspaces stay."""
    _freed: int = field(default=0, init=False)

    @cached_property
    def workspaces(self) -> list[Stored]:
        """All workspaces, the least recently used first."""
        return _listed(_workspace(path) for path in self._directories("sessions"))

    @cached_property
    def mirrors(self) -> list[Stored]:
        """All mirrors, the least recently used first."""
        return _listed(_mirror(path) for path in self._directories("mirrors"))

    @cached_property
    def old_workspaces(self) -> list[Stored]:
        """The workspaces to remove."""
        may_go = [each for each in self.workspaces if self._is_unneeded(each)]
        return self._chosen(self.workspaces, may_go, self.rules.workspace_days, self.rules.workspace_space)

    @cached_property
    def old_mirrors(self) -> list[Stored]:
        """The mirrors to remove, if those workspaces are removed."""
        going = {each.path for each in self.old_workspaces}
        lent = borrowed(each.path for each in self.workspaces if each.path not in going)
        may_go = [each for each in self.mirrors if str(each.path) not in lent and self._age(each) >= LEAST_MIRROR]
        may_go = [each for each in may_go if not _is_locked(each)]
        return self._chosen(self.mirrors, may_go, self.rules.mirror_days, self.rules.mirror_space)

    def remove(self) -> tuple[list[Stored], list[Stored]]:
        """Remove them, except what is in use by now; returns the workspaces and mirrors that went."""
        for path in (*self.root.glob(f"sessions/{_REMOVING}*"), *self.root.glob(f"mirrors/{_REMOVING}*")):
            remove(path)
        workspaces = [each for each in self.old_workspaces if _remove(each, _was_used)]
        mirrors = [each for each in self.old_mirrors if _remove(each, self._is_needed)]
        return workspaces, mirrors

    def _directories(self, kind: str) -> Iterator[Path]:
        if (self.root / WORKSPACE_MARKER).exists() and (self.root / kind).is_dir():
            for path in sorted((self.root / kind).iterdir()):
                if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                    yield path

    def _is_needed(self, mirror: Stored) -> bool:
        return _mirror(mirror.path) != mirror or str(mirror.path) in borrowed(self._directories("sessions"))

    def _is_unneeded(self, each: Stored) -> bool:
        order = each.path / "order"
        last = order.read_text() if order.is_file() else ""
        return last not in self.needed and self._age(each) >= LEAST_WORKSPACE and not _is_locked(each)

    def _chosen(
        self, held: Sequence[Stored], may_go: Sequence[Stored], days: int | None, space: int | None
    ) -> list[Stored]:
        """Those that are old enough; while there is too little room also others, the least recently used first."""
        chosen = [each for each in may_go if days is not None and self._age(each) >= kept_for(days)]
        used = 0 if space is None else sum(each.bytes for each in held) - sum(each.bytes for each in chosen)
        self._freed += sum(each.bytes for each in chosen)
        for each in may_go[len(chosen) :]:
            if (space is None or used <= space) and self._freed >= self._lacking:
                break
            chosen.append(each)
            used -= each.bytes
            self._freed += each.bytes
        return chosen

    @cached_property
    def _lacking(self) -> int:
        """The bytes by which less than a tenth of the disk is free."""
        disk = disk_usage(existing(self.root))
        return disk.total // FREE_PART - disk.free

    def _age(self, each: Stored) -> timedelta:
        return self.now - each.used_at


def borrowed(workspaces: Iterable[Path]) -> set[str]:
    """The mirrors from which these workspaces borrow objects."""
    found: set[str] = set()
    for path in workspaces:
        # Of the drone's own git directory: an agent cannot write there.
        lenders = path / "git" / "objects" / "info" / "alternates"
        if lenders.is_file():
            found |= {str(Path(line).parent) for line in lenders.read_text().splitlines() if line}
    return found


def size_of(path: Path) -> int:
    """The bytes that a directory takes on the disk; what disappears meanwhile does not count."""
    found = 0
    with suppress(OSError):
        for visited in walk(path):
            for entry in visited.entries:
                with suppress(OSError):  # gone, or not ours to look at: the size is for people
                    if not entry.is_dir(follow_symlinks=False):
                        found += entry.stat(follow_symlinks=False).st_blocks * 512
    return found


def _listed(found: Iterable[Stored]) -> list[Stored]:
    return sorted(found, key=lambda each: (each.used_at, each.path))


def _workspace(path: Path) -> Stored:
    lock = path / "lock"
    return Stored(path, lock, _newest(path, lock, path / "order", path / "git" / "checkpoint.index"))


def _mirror(path: Path) -> Stored:
    lock = path.with_suffix(".lock")
    return Stored(path, lock, _newest(path, lock, path / "dronefleet-refs"))


def _newest(*paths: Path) -> datetime:
    return datetime.fromtimestamp(max(path.stat().st_mtime for path in paths if path.exists()), UTC)


def _is_locked(each: Stored) -> bool:
    if not each.lock.exists():
        return False
    try:
        lock = FileLock(each.lock)
        lock.take(seconds=0, check=_nothing)
    except Busy:
        return True
    lock.release()
    return False


def _was_used(workspace: Stored) -> bool:
    """Whether it was used since it was found."""
    return _workspace(workspace.path) != workspace


def _remove(each: Stored, stays: Callable[[Stored], bool]) -> bool:
    """Remove it unless it is in use, or was used before it could be locked.

    It disappears as a whole: killed in between, the rest goes with the next run.
    """
    lock = FileLock(each.lock)
    try:
        lock.take(seconds=0, check=_nothing)
    except Busy:
        return False
    try:
        if stays(each):
            return False
        going = each.path.with_name(f"{_REMOVING}{each.path.name}")
        each.path.rename(going)
    finally:
        lock.release()
    remove(going)
    return True


def _nothing() -> None:
    """A wait for a lock that nothing ends early."""
