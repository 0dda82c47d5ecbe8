"""Reads which MCP servers are configured: by the drone's owner, and by the project where the policy allows it.

Nothing in these files can stop a run: what is wrong is left out, and said in one sentence.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drone.mcp_servers.config import VARIABLE, ServerConfig, parsed, unknown_keys

OWNER_FILE = "mcp.json"
"""In the drone's home."""
PROJECT_FILE = "mcp.json"
"""In the project's `.dronefleet/`."""
LARGEST_FILE = 1_000_000
MOST_SERVERS = 16
_SECRET = re.compile("(?i)auth|key|token|secret|passw|cookie|credential")


@dataclass(frozen=True)
class Configs:
    """The servers of a run, by name, and what is wrong with the files."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[str, ...] = ()


def read_configs(home: Path, project: Path | None, environ: Mapping[str, str]) -> Configs:
    """Read `<home>/mcp.json` and `<project>/mcp.json`; the owner's entry wins over the project's of the same name.

    `project` is the directory `.dronefleet` of the repository, None where its servers are not allowed. `${VAR}` is
    taken from `environ` in the owner's file, and left as it stands in the project's.
    """
    problems: list[str] = []
    entries = _Entries(problems, environ)
    if project is not None:
        entries.add(project / PROJECT_FILE, owners=False)
    entries.add(home / OWNER_FILE, owners=True)
    found = entries.wanted()
    for config in found[MOST_SERVERS:]:
        problems.append(f"MCP server {config.name!r} is left out: a run has at most {MOST_SERVERS}")
    return Configs(tuple(found[:MOST_SERVERS]), tuple(map(_printable, problems)))


def secrets_of(home: Path, environ: Mapping[str, str]) -> list[str]:
    """What of the owner's servers nobody shall read in a run's record: a redactor takes these.

    The values of all variables that the file names, and of headers and variables whose names speak of a secret.
    """
    try:
        text = (_content(home / OWNER_FILE, follow=True) or b"").decode("utf-8", "replace")
    except ValueError:
        return []
    found = {environ[name] for name in VARIABLE.findall(text) if name in environ}
    for config in read_configs(home, None, environ).servers:
        for name, value in {**config.env, **config.headers}.items():
            if _SECRET.search(name):
                # `Bearer` before it is none.
                found |= {value, *value.split()[-1:]}
    return sorted(filter(None, found))


class _Entries:
    """The entries of both files; those that came later cover earlier ones, also where they are wrong."""

    def __init__(self, problems: list[str], environ: Mapping[str, str]) -> None:
        self._problems = problems
        self._environ = environ
        self._servers: dict[str, ServerConfig | None] = {}

    def add(self, file: Path, *, owners: bool) -> None:
        whose = f"the owner's file {file}" if owners else f"the project's .dronefleet/{PROJECT_FILE}"
        try:
            document = _document(file, follow=owners)
        except ValueError as error:
            self._problems.append(f"No MCP servers from {whose}: {error}")
            return
        for name, entry in document.items():
            self._servers[name] = None
            where = f"MCP server {name[:100]!r} of {whose}"
            if unknown := unknown_keys(entry):
                self._problems.append(f"{where} has keys that mean nothing here: {', '.join(unknown[:10])}")
            try:
                self._servers[name] = parsed(name, entry, owners=owners, environ=self._environ)
            except ValueError as error:
                self._problems.append(f"{where} is left out: {error}")

    def wanted(self) -> list[ServerConfig]:
        found = (config for config in self._servers.values() if config is not None and not config.disabled)
        return sorted(found, key=lambda config: config.name)


def _printable(text: str) -> str:
    """The files' own words may hold anything, and the sentences go to journals and terminals."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _document(file: Path, *, follow: bool) -> dict[str, Any]:
    """The entries by name; none where there is no file. Raises ValueError, with why."""
    content = _content(file, follow=follow)
    if content is None:
        return {}
    try:
        document = json.loads(content.decode())
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    except (ValueError, RecursionError):
        # An integer of 5,000 digits, or lists in lists in lists.
        raise ValueError("it is not JSON that can be read") from None
    if not isinstance(document, dict) or not isinstance(document.get("mcpServers"), dict):
        raise ValueError('it is not an object with "mcpServers" by name')
    return dict(document["mcpServers"])


def _content(file: Path, *, follow: bool) -> bytes | None:
    """All of a regular file. A link is the owner's own business; in a repository it could lead out of it."""
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(file, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a file")
        content = b"".join(_pieces(descriptor))
    finally:
        os.close(descriptor)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"it is longer than {LARGEST_FILE:,} bytes")
    return content


def _pieces(descriptor: int) -> Iterator[bytes]:
    left = LARGEST_FILE + 1
    while left > 0 and (piece := os.read(descriptor, left)):
        left -= len(piece)
        yield piece
