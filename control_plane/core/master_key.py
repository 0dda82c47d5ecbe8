"""The master key: from a file, which may change while processes use it, or from a variable."""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from nacl.secret import SecretBox
from nacl.utils import random

from control_plane.core.durable import sync_directory
from control_plane.core.settings import FleetSettings
from shared.errors import Conflict, Precondition

MasterKeys = Callable[[], tuple[bytes, ...]]
"""Returns the keys that are valid now: the first one seals, all of them open."""


def master_keys(settings: FleetSettings) -> MasterKeys:
    """The source of the master key that the settings name; a missing key file is written first (0600).

    Raises Precondition if there is neither key nor file, or if the value is not a key.
    """
    if settings.master_key:
        keys = _decoded(settings.master_key.split(","), "FLEET_MASTER_KEY")
        return lambda: keys
    if settings.master_key_file is None:
        raise Precondition(
            "no master key is set",
            code="E-MASTER-KEY",
            why="provider keys and git passwords are encrypted with it",
            next="FLEET_MASTER_KEY_FILE=/path/master.key (created on first use; keep a backup)",
        )
    return MasterKeyFile(settings.master_key_file)


def new_master_key() -> bytes:
    return random(SecretBox.KEY_SIZE)


def fingerprint(key: bytes) -> str:
    """A name for a master key that reveals nothing about it."""
    return sha256(b"dronefleet master key" + key).hexdigest()[:16]


class MasterKeyFile:
    """A file with one key in each line, created if it is missing.

    It is read at each use, so that a rotation reaches processes that are running. If it is missing or invalid by then,
    the last valid keys continue to apply: an interrupted edit must not stop the fleet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _errors(self.path):
            if not path.exists():
                _create(path, (new_master_key(),))
        self._keys = read_key_file(self.path)

    def __call__(self) -> tuple[bytes, ...]:
        with contextlib.suppress(Precondition):
            self._keys = read_key_file(self.path)
        return self._keys

    def replace(self, keys: Sequence[bytes]) -> None:
        """Write these keys, within `alone`; a reader sees the old or the new file, never a part.

        Raises Precondition if the file cannot be written.
        """
        target = self.path.resolve()
        with _errors(self.path):
            # A process that was killed here leaves keys behind.
            for left in target.parent.glob(f".{target.name}-*"):
                left.unlink(missing_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}-", delete=False) as draft:
                draft.write(key_file_text(keys))
                draft.flush()
                os.fchown(draft.fileno(), -1, target.stat().st_gid)
                os.fchmod(draft.fileno(), stat.S_IMODE(target.stat().st_mode))
                os.fsync(draft.fileno())
            Path(draft.name).replace(target)
            # What is sealed under a new key must not outlive the file that contains it.
            sync_directory(target.parent)
        self._keys = tuple(keys)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Only one process at a time changes the file. Raises Conflict while another one does, Precondition if the
        file belongs to another user, whose processes could not read what this one writes."""
        with _errors(self.path):
            owner = self.path.stat().st_uid
            directory = os.open(self.path.resolve().parent, os.O_RDONLY)
        try:
            if owner != os.geteuid():
                raise Precondition(
                    f"the master key file {self.path} belongs to another user",
                    code="E-MASTER-KEY",
                    why="the control plane could not read the files that this command writes",
                    next=f"run this command as the user with id {owner}",
                )
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Conflict(
                    "another process is rotating the master key", code="E-KEYS-BUSY", next="fleet keys ls"
                ) from error
            yield
        finally:
            os.close(directory)


def read_key_file(path: Path) -> tuple[bytes, ...]:
    """The keys in a file. Raises Precondition if it is missing or has none."""
    with _errors(path):
        text = path.read_text()
    return _decoded(text.split("\n"), str(path))


def create_key_file(path: Path, keys: Sequence[bytes]) -> None:
    """Write a new file with these keys (0600); one that exists stays. Raises Precondition if it cannot be written."""
    with _errors(path):
        _create(path, keys)


def key_file_text(keys: Sequence[bytes]) -> str:
    """The content of a file with these keys."""
    return "".join(f"{base64.b64encode(key).decode()}\n" for key in keys)


def _create(path: Path, keys: Sequence[bytes]) -> None:
    # Written completely to a draft, then linked: another process that starts now sees no file or the whole file. If two
    # processes create it, the second one's link fails and it reads the file of the first one.
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-") as draft:
        draft.write(key_file_text(keys))
        draft.flush()
        os.fsync(draft.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, path)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise Precondition(f"the master key file {path} cannot be used", code="E-MASTER-KEY", why=why) from error


def _decoded(texts: Sequence[str], where: str) -> tuple[bytes, ...]:
    """The keys, one of each text that is not blank. Raises Precondition unless there is one and all are keys."""
    keys = tuple(_key(text) for text in texts if text.strip())
    if not keys or any(len(key) != SecretBox.KEY_SIZE for key in keys):
        raise Precondition(f"{where} is not a master key: expected 32 bytes in base64", code="E-MASTER-KEY")
    return keys


def _key(text: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""
