"""Reads the configured MCP servers: those of the drone's owner, and those of the project if the policy allows it.

These files can never stop a run: an invalid entry is left out and reported in one sentence.
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
from shared.foreign_text import decoded

OWNER_FILE = "mcp.json"
"""In the drone's home."""
PROJECT_FILE = "mcp.json"
"""In the project's `.dronefleet/`."""
LARGEST_FILE = 1_000_000
MOST_SERVERS = 16
_SECRET = re.compile("(?i)auth|key|token|secret|passw|cookie|credential")


@dataclass(frozen=True)
class Configs:
    """The servers of a run, sorted by name, and the problems with the files."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[str, ...] = ()


def read_configs(home: Path, project: Path | None, environ: Mapping[str, str]) -> Configs:
    """Read `<home>/mcp.json` and `<project>/mcp.json`; the owner's entry overrides the project's of the same name.

    `project` is the directory `.dronefleet` of the repository, None if its servers are not allowed. `${VAR}` is
    replaced from `environ` in the owner's file, and left unchanged in the project's.
    """
    problems: list[str] = []
    entries = _Entries(problems, environ)
    if project is not None:
        entries.add(project / PROJECT_FILE, owners=False)
    entries.add(home / OWNER_FILE, owners=True)
    found = entries.wanted()
    for config in found[MOST_SERVERS:]:
        problems.append(f"MCP server {config.name!r} is ignored: a run can have at most {MOST_SERVERS}")
    return Configs(tuple(found[:MOST_SERVERS]), tuple(map(_printable, problems)))


def secrets_of(home: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the secrets of the owner's servers, which a redactor removes from a run's record.

    These are the values of all variables referenced in the file, and of headers and variables whose names suggest a
    secret.
    """
    try:
        text = decoded(_content(home / OWNER_FILE, follow=True) or b"")
    except ValueError:
        return []
    found = {environ[name] for name in VARIABLE.findall(text) if name in environ}
    for config in read_configs(home, None, environ).servers:
        for name, value in {**config.env, **config.headers}.items():
            if _SECRET.search(name):
                # The prefix `Bearer` is not part of the secret.
                found |= {value, *value.split()[-1:]}
    return sorted(filter(None, found))


class _Entries:
    """The entries of both files; later ones override earlier ones, even if they are invalid."""

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
                self._problems.append(f"{where} has unknown keys: {', '.join(unknown[:10])}")
            try:
                self._servers[name] = parsed(name, entry, owners=owners, environ=self._environ)
            except ValueError as error:
                self._problems.append(f"{where} is ignored: {error}")

    def wanted(self) -> list[ServerConfig]:
        found = (config for config in self._servers.values() if config is not None and not config.disabled)
        return sorted(found, key=lambda config: config.name)


def _printable(text: str) -> str:
    """Replace unprintable characters: text from the files may contain any, and goes to journals and terminals."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _document(file: Path, *, follow: bool) -> dict[str, Any]:
    """Return the entries by name; none if there is no file. Raises ValueError with the reason."""
    content = _content(file, follow=follow)
    try:
        text = decoded(content or b"")
    except ValueError as error:
        raise ValueError(f"it {error}") from None
    if not text.strip():
        return {}
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    except (ValueError, RecursionError):
        # For example an integer of 5,000 digits, or deeply nested lists.
        raise ValueError("it is not JSON that can be parsed") from None
    if not isinstance(document, dict) or not isinstance(document.get("mcpServers"), dict):
        raise ValueError('it is not an object with an object "mcpServers"')
    return dict(document["mcpServers"])


def _content(file: Path, *, follow: bool) -> bytes | None:
    """Read a whole regular file. The owner may use links; in a repository, a link could lead out of it."""
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
        raise ValueError(f"it is larger than {LARGEST_FILE:,} bytes")
    return content


def _pieces(descriptor: int) -> Iterator[bytes]:
    left = LARGEST_FILE + 1
    while left > 0 and (piece := os.read(descriptor, left)):
        left -= len(piece)
        yield piece
