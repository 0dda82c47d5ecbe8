"""The directory in which `fleet up` keeps everything; one process may use it at a time."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from shared.errors import Conflict, Invalid
from shared.terminal.private_files import make_private

_LOCK_TRIES = 5
_LOCK_PAUSE = 0.02
"""Seconds."""


@dataclass(frozen=True)
class Remembered:
    """What must stay the same from one `fleet up` to the next, because drones received it when they registered."""

    port: int = 0
    broker_port: int = 0
    flower_port: int = 0
    demo_port: int = 0
    """Of the demo's scripted model."""
    broker_password: str = ""
    flower_password: str = ""

    def with_new_passwords(self) -> Remembered:
        """The same with newly generated passwords."""
        return replace(self, broker_password=secrets.token_hex(24), flower_password=secrets.token_urlsafe(12))


class DataDir:
    """Paths under the directory, its lock, and the values remembered there."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.database_url = f"sqlite:///{self.root / 'fleet.db'}"
        self.broker = self.root / "valkey"
        self.blobs = self.root / "blobs"
        self.logs = self.root / "logs"
        self.drones = self.root / "drones"
        self.master_key = self.root / "master.key"
        self.admin_token = self.root / "admin-token"
        self._remembered = self.root / "up.json"
        self._lock: IO[str] | None = None

    def open(self) -> None:
        """Create the directory and take its lock.

        Raises Conflict if another `fleet up` holds it, and Invalid if the directory cannot be used.
        """
        try:
            for path in (self.root, self.broker, self.blobs, self.logs, self.drones):
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = (self.root / "lock").open("a+")
        except OSError as error:
            raise Invalid(
                f"{self.root} cannot be used for the fleet's data: {error.strerror}",
                code="E-UP-DATA-DIR",
                next="fleet up --data-dir DIRECTORY",
            ) from error
        if not self._is_locked():
            self._lock.seek(0)
            holder = self._lock.read().strip() or "unknown"
            self.close()
            raise Conflict(
                f"another `fleet up` (process {holder}) is using {self.root}",
                code="E-UP-RUNNING",
                next="fleet doctor    or stop it: fleet stop",
            )
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()

    def make_private(self) -> str:
        """Take access to what is kept here from other users; '' or a sentence about what is left.

        A drone does the same for its own home, in which commands of another account must read the workspaces.
        """
        ours = [self.broker, self.blobs, self.logs, self.master_key, self.admin_token, self._remembered]
        ours += [self.root / "lock", *self.root.glob("fleet.db*"), *self.root.glob("broker-*")]
        return make_private(self.root, ours) or make_private(self.drones, [])

    def _is_locked(self) -> bool:
        """Take the lock; retried for a moment, because `holder` holds it while it looks."""
        assert self._lock is not None
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOCK_PAUSE)
            else:
                return True
        return False

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def discard(self) -> None:
        """Delete the lock and all directories without files, as after an `open` that led to nothing."""
        (self.root / "lock").unlink(missing_ok=True)
        for directory, _, _ in os.walk(self.root, topdown=False):
            with suppress(OSError):
                Path(directory).rmdir()

    def holder(self) -> int | None:
        """The id of the `fleet up` process that uses this directory; None if there is none."""
        try:
            with (self.root / "lock").open("r") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(lock.read().strip() or 0) or None
        except FileNotFoundError:
            pass
        return None

    def remembered(self) -> Remembered:
        """The choices of an earlier `fleet up`; passwords are generated on first use."""
        known = {}
        if self._remembered.exists():
            known = json.loads(self._remembered.read_text())
        found = Remembered(**{name: known[name] for name in asdict(Remembered()) if name in known})
        if not found.broker_password:
            found = found.with_new_passwords()
        return found

    def remember(self, chosen: Remembered) -> None:
        write_private(self._remembered, json.dumps(asdict(chosen), indent=2))

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"


def write_private(path: Path, text: str) -> None:
    """Replace `path` with `text`, readable only by its owner; a reader sees the old or the new text, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
