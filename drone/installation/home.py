"""The drone's home directory: its identity, its keys, and the locations of its runs, logs and workspaces.

Secrets are in separate files with mode 0600, written atomically: under another name first, then renamed.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.envelope import new_private_key
from shared.errors import Conflict, Precondition
from shared.names import new_id
from shared.registration import Credentials
from shared.terminal.directories import data_home
from shared.terminal.private_files import make_private

T = TypeVar("T", bound=BaseModel)


class DroneConfig(BaseModel):
    """What a registered drone knows about itself and its control plane; holds no secret."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    drone_id: str
    name: str
    server_url: str
    ca_file: str = ""
    """Absolute path of certificates of authorities to trust besides the machine's; empty: none."""
    control_plane_public_key: str
    """Base64 of 32 bytes."""
    labels: dict[str, str] = Field(default_factory=dict)
    concurrency: int = Field(1, ge=1, le=64)
    sandbox: str = "auto"
    """As requested: auto, bwrap, docker or none; `auto` is resolved at each start."""
    workspace: str
    """Absolute path."""
    host: str = ""
    machine_id: str

    @property
    def control_plane_key(self) -> bytes:
        """The control plane's public key, as the envelope expects it."""
        return base64.b64decode(self.control_plane_public_key)


class NextKeys(BaseModel):
    """The key and the credentials that replace the current ones at the next start; in one file, so that neither can be
    there without the other."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    private_key: str = Field(repr=False)
    """Base64 of 32 bytes."""
    credentials: Credentials


class DroneHome:
    """Paths and files of one drone. Nothing is created until something is saved."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "drone.json"
        self.credentials_file = path / "credentials.json"
        self.key_file = path / "key"
        self.lock_file = path / "lock"
        self.boot_file = path / "boot"
        self.drained_file = path / "drained"
        """Exists while this drone is drained: it takes no more orders."""
        self.last_drain_file = path / "last-drain"
        """When the last drain message that was acted on was issued: an older one is a replay."""
        self.last_rename_file = path / "last-rename"
        """The same, for the message with the drone's name."""
        self.rotation_file = path / "replace-keys"
        """Exists while this drone is asked to replace its keys."""
        self.next_keys_file = path / "next-keys.json"
        self.spending_file = path / "spending"
        """What the calls of models cost today."""
        self.git_config_file = path / "gitconfig"
        """The owner's git configuration that fetches and pushes need, copied at registration and start."""
        self.log_dir = path / "logs"
        self.log_file = path / "logs" / "drone.log"
        self.runs_dir = path / "runs"
        self.default_workspace = path / "workspace"

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> DroneHome:
        """The home named by DRONE_HOME, else `$XDG_DATA_HOME/dronefleet/drone`."""
        named = environ.get("DRONE_HOME")
        return cls(Path(named).expanduser().absolute() if named else data_home() / "dronefleet" / "drone")

    def run_dir(self, run_id: str) -> Path:
        """The directory of a run's journal, lock and logs; if it exists, the run was claimed here."""
        return self.runs_dir / run_id

    def config(self) -> DroneConfig:
        """The drone's configuration. Raises Precondition if it is not registered or the file cannot be read."""
        return _read(DroneConfig, self.config_file)

    def credentials(self) -> Credentials:
        """The drone's secrets. Raises Precondition if it is not registered or the file cannot be read."""
        return _read(Credentials, self.credentials_file)

    def private_key(self) -> bytes:
        """The drone's X25519 key, 32 bytes. Raises Precondition if it is missing or damaged."""
        try:
            key = base64.b64decode(self.key_file.read_text().strip(), validate=True)
        except FileNotFoundError as error:
            raise _not_registered(self.path) from error
        except (OSError, ValueError) as error:
            raise _unreadable(self.key_file, str(error)) from error
        if len(key) != 32:
            raise _unreadable(self.key_file, f"expected 32 bytes, found {len(key)}")
        return key

    def make_private_key(self) -> bytes:
        """The existing key, else a new one: registering again with the same key gives the same drone."""
        if not self.key_file.exists():
            self._write(self.key_file, base64.b64encode(new_private_key()).decode() + "\n")
        return self.private_key()

    def replace_private_key(self) -> bytes:
        """A new key in place of one that was revoked."""
        self.key_file.unlink(missing_ok=True)
        return self.make_private_key()

    def save_next_keys(self, private_key: bytes, credentials: Credentials) -> None:
        """Save what `take_next_keys` puts into use at the next start."""
        keys = NextKeys(private_key=base64.b64encode(private_key).decode(), credentials=credentials)
        self._write(self.next_keys_file, keys.model_dump_json(indent=2) + "\n")

    def take_next_keys(self) -> None:
        """Put the next keys into use, if there are any; repeated after a crash. Nobody may use the old ones now."""
        if not self.next_keys_file.exists():
            return
        keys = _read(NextKeys, self.next_keys_file)
        self._write(self.key_file, keys.private_key + "\n")
        self._write(self.credentials_file, keys.credentials.model_dump_json(indent=2) + "\n")
        self._forget_next_keys()

    def _forget_next_keys(self) -> None:
        # In this order: the demand is over once its keys are in use.
        self.rotation_file.unlink(missing_ok=True)
        self.next_keys_file.unlink(missing_ok=True)

    def save(self, config: DroneConfig, credentials: Credentials) -> None:
        """Save a registration. The configuration is written last: once it exists, the drone counts as registered."""
        if not self.config_file.exists() or self.config().drone_id != config.drone_id:
            # A new drone starts ready for work, even if the previous one was drained.
            self.drained_file.unlink(missing_ok=True)
            self.last_drain_file.unlink(missing_ok=True)
            self.last_rename_file.unlink(missing_ok=True)
        self._forget_next_keys()
        self._write(self.credentials_file, credentials.model_dump_json(indent=2) + "\n")
        self._write(self.config_file, config.model_dump_json(indent=2) + "\n")

    def rename(self, name: str) -> None:
        """Save another name; the next boot uses it."""
        config = self.config().model_copy(update={"name": name})
        self._write(self.config_file, config.model_dump_json(indent=2) + "\n")

    def forget(self) -> None:
        """Remove the registration and the key; workspaces, runs and logs stay."""
        self._forget_next_keys()
        for file in (self.config_file, self.credentials_file, self.key_file):
            file.unlink(missing_ok=True)

    def machine_id(self) -> str:
        """This machine's id, or one kept in the home if the system has none."""
        for file in (Path("/etc/machine-id"), self.path / "machine-id"):
            with contextlib.suppress(OSError):
                if text := file.read_text().strip():
                    return text
        self._write(self.path / "machine-id", secrets.token_hex(16) + "\n")
        return (self.path / "machine-id").read_text().strip()

    def new_boot(self) -> str:
        """A new boot id, kept in the file `boot` while the lock is held."""
        boot_id = new_id()
        self._write(self.boot_file, boot_id + "\n")
        return boot_id

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the home for this process. Raises Conflict if another drone runs in it.

        The kernel releases the lock (flock) when its holder ends for any reason. The process id in the file is for
        people and for `holder`, and decides nothing here.
        """
        self._make()
        with os.fdopen(os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            if not _locked(file):
                raise _in_use(self.path, file.read().strip())
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield
            file.truncate(0)

    def holder(self) -> int | None:
        """The id of the process that runs the drone in this home (0 if unknown), or None."""
        try:
            with self.lock_file.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return None
        except BlockingIOError:
            text = self.lock_file.read_text().strip()
            return int(text) if text.isdigit() else 0
        return None

    def loosely_kept(self) -> list[Path]:
        """Files with secrets that users other than the owner can access."""
        files = (self.credentials_file, self.key_file, self.next_keys_file)
        return [file for file in files if file.exists() and file.stat().st_mode & 0o077]

    def make_private(self) -> str:
        """Take access to the home from other users; '' or a sentence about what is left.

        Below the workspaces, modes stay: there, root's drones run commands as another user.
        """
        files = (self.config_file, self.credentials_file, self.key_file, self.lock_file, self.boot_file)
        others = (self.drained_file, self.git_config_file, self.path / "machine-id", self.log_dir, self.runs_dir)
        return make_private(self.path, [*files, *others, self.rotation_file, self.next_keys_file])

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise Precondition(
                f"the drone's home {self.path} cannot be created",
                code="E-HOME",
                why=str(error),
                next="export DRONE_HOME=DIR",
            ) from error

    def _write(self, file: Path, text: str) -> None:
        """Write `text` to `file` atomically, readable only by its owner: a crash leaves the old file or the new one."""
        self._make()
        draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        draft.replace(file)


def _read(model: type[T], file: Path) -> T:
    try:
        return model.model_validate_json(file.read_text())
    except FileNotFoundError as error:
        raise _not_registered(file.parent) from error
    except ValidationError as error:
        # Never the error's own text: it quotes the file, which may hold secrets.
        raise _unreadable(file, f"missing or invalid fields: {error.error_count()}") from error
    except OSError as error:
        raise _unreadable(file, str(error)) from error


def _locked(file: TextIO) -> bool:
    # Retry, because `holder` takes the lock for an instant to check whether it is free.
    for _ in range(10):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.02)
    return False


def _not_registered(home: Path) -> Precondition:
    return Precondition(
        "this drone is not registered",
        code="E-NOT-REGISTERED",
        why=f"no registration in {home}",
        next="drone register --url URL --token TOKEN    (the token: fleet token add)",
    )


def _unreadable(file: Path, why: str) -> Precondition:
    return Precondition(
        f"{file} cannot be used", code="E-HOME-DAMAGED", why=why, next="drone register --url URL --token TOKEN"
    )


def _in_use(home: Path, holder: str) -> Conflict:
    return Conflict(
        f"a drone is already running in {home}",
        code="E-DRONE-RUNNING",
        why=f"process {holder} holds its lock" if holder else "another process holds its lock",
        next="drone status        or, for a second drone here: DRONE_HOME=DIR drone register ...",
    )
