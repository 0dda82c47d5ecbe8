"""The directory of one run on this drone's disk: its marker, its journal, its lock.

A run directory is created once and kept for at least seven days, longer than its run key: while it exists, no copy of
the order's message can start the run a second time.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from drone.installation.home import DroneHome
from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from shared.events import RunEnded
from shared.names import ID_LENGTH

CANNOT_LOCK = "the run directory is locked by another process"


@dataclass(frozen=True)
class Meta:
    """What a drone that starts after a crash must know about a run."""

    order_id: str
    generation: int
    boot_id: str
    claimed_at: str
    pid: int | None = None
    started_at: float | None = None
    """The kernel's start time of the process: a pid alone may have been reused."""
    machine_boot: str = ""
    """The kernel's id of the machine's boot, from which that time counts."""
    confirmed: bool = False
    """The control plane has every event; the journal is gone."""
    drone_id: str = ""
    """The drone that claimed the run; empty if a release without this field wrote it."""

    def unconfirmed_of(self, drone_id: str) -> bool:
        """Whether the control plane of this drone may lack events: another registration's are not for it."""
        return not self.confirmed and self.drone_id in {"", drone_id}


@dataclass(frozen=True)
class RunDirectory:
    """Paths and facts of one run. Reading is safe at any time; one process holds the lock."""

    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def journal(self) -> Path:
        return self.path / journal.FILE

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def sent(self) -> Path:
        """How far the journal is known to be in the stream; may lag behind, but never runs ahead."""
        return self.path / "sent"

    @property
    def orphaned(self) -> Path:
        """The receipt of a run that ended itself because its worker was gone and could not receive it."""
        return self.path / "orphaned.json"

    @property
    def spending(self) -> Path:
        """See `drone.runs.kept_spending`."""
        return self.path / "spending"

    def create(self, meta: Meta) -> bool:
        """Create the directory; False if it already exists, which means that this run was here before.

        Raises OSError if the disk has no room for it, and leaves nothing behind then.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:
            return False
        try:
            self.logs.mkdir(mode=0o700)
            self.save(meta)
            # Both now: if the disk fills up, the run can still be locked and its end written.
            (self.path / "lock").touch(mode=0o600)
            journal.reserve(self.path)
            _sync_directory(self.path.parent)
        except OSError:
            self.discard()
            raise
        return True

    def discard(self) -> None:
        """Delete a directory whose run was not claimed."""
        shutil.rmtree(self.path)

    def meta(self) -> Meta | None:
        """The facts last saved, or None if a crash came before the first write was complete."""
        try:
            known = json.loads((self.path / "meta.json").read_text())
            return Meta(**{name: value for name, value in known.items() if name in Meta.__dataclass_fields__})
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def save(self, meta: Meta) -> None:
        """Replace the facts atomically: a reader sees the old ones or the new."""
        fresh = self.path / "meta.json.new"
        with fresh.open("w") as file:
            json.dump(asdict(meta), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path / "meta.json")

    def lock(self) -> int | None:
        """Take the run's lock; the kernel frees it when the holder dies. None if another process has it."""
        held = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return None
        return held

    def identity(self) -> RunIdentity | None:
        """The run's identity, or None if a crash came before it was saved."""
        meta = self.meta()
        return RunIdentity(self.run_id, meta.order_id, meta.generation) if meta else None

    def end(self) -> RunEnded | None:
        """The run's last event, if it was written."""
        line = journal.tail(self.journal)
        return line.event.body if line and isinstance(line.event.body, RunEnded) else None

    def forget(self) -> None:
        """Delete the journal and the logs; the directory stays as the marker that the run was here."""
        meta = self.meta()
        # The largest and least needed files go first, so that a full disk has room for the mark.
        shutil.rmtree(self.logs, ignore_errors=True)
        (self.path / journal.RESERVE).unlink(missing_ok=True)
        if meta:
            self.save(replace(meta, confirmed=True))
        self.journal.unlink(missing_ok=True)
        self.sent.unlink(missing_ok=True)


def all_runs(root: Path) -> Iterator[RunDirectory]:
    """Every run directory below `root`, oldest name first."""
    if root.is_dir():
        for path in sorted(root.iterdir()):
            if path.is_dir() and len(path.name) == ID_LENGTH:
                yield RunDirectory(path)


def not_needed_since(root: Path, drone_id: str, before: datetime) -> Iterator[RunDirectory]:
    """The directories of confirmed runs, of other drones, and of runs that never began, last changed before then."""
    for run in all_runs(root):
        meta = run.meta()
        if (meta is None or not meta.unconfirmed_of(drone_id)) and run.path.stat().st_mtime < before.timestamp():
            yield run


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True)
class ActiveRun:
    """An active run of this drone, as found in its directory."""

    run: str
    order: str
    since: str
    """ISO 8601, the drone's clock."""


def runs_in_hand(home: DroneHome) -> list[ActiveRun]:
    """The runs of the drone's current boot that have not ended; only meaningful while the drone runs."""
    boot = home.boot_file.read_text().strip() if home.boot_file.exists() else None
    return [found for run in all_runs(home.runs_dir) if (found := _in_hand(run, boot))]


def _in_hand(run: RunDirectory, boot: str | None) -> ActiveRun | None:
    meta = run.meta()
    if meta is None or meta.confirmed or meta.boot_id != boot or run.end() is not None:
        return None
    return ActiveRun(run.run_id, meta.order_id, meta.claimed_at)
