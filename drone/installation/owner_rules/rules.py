"""What the owner of a drone rules: which orders it takes, how much its models may cost, and what it keeps on disk."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlsplit

from drone.installation.key_addresses import may_go

RUN_DAYS = 7
"""A directory of a run is kept for at least so long: it prevents the run from starting twice."""
_PARTS_OF_A_LINE = re.compile(r"[;|&\n(){}`]+")


@dataclass(frozen=True)
class OrderRules:
    """Which orders it takes, and what their models may use: patterns with `*` and `?`; None: everything is allowed."""

    repositories: tuple[str, ...] | None = None
    organizations: tuple[str, ...] | None = None
    modes: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    commands: tuple[str, ...] = ()
    """Commands that are refused."""

    def allows_repository(self, url: str) -> bool:
        """Whether a pattern fits the address, with its scheme or without; neither login nor `.git` count."""
        if self.repositories is None:
            return True
        place = _place(url)
        without = place.partition("://")[2]
        return any(fnmatchcase(place if "://" in each else without, _plain(each)) for each in self.repositories)

    def allows_organization(self, name: str) -> bool:
        return _fits(name, self.organizations)

    def allows_mode(self, mode: str) -> bool:
        return _fits(mode, self.modes)

    def allows_tool(self, name: str) -> bool:
        """Without `submit`, a run could not end."""
        return name == "submit" or _fits(name, self.tools)

    def refuses_command(self, line: str) -> str | None:
        """The pattern that refuses a shell line, for the whole line or a part of it; None if there is none."""
        parts = [" ".join(part.split()) for part in (line, *_PARTS_OF_A_LINE.split(line))]
        return next((each for each in self.commands if any(fnmatchcase(part, each) for part in parts)), None)


@dataclass(frozen=True)
class SpendRules:
    """How much its models may cost in a day: the table `[spend]`."""

    usd_per_day: float | None = None
    """For all runs together, from midnight to midnight in local time; None: no limit."""
    unpriced: tuple[str, ...] = ()
    """Addresses of models that may be used under a limit although their price is unknown."""

    def is_used_up(self, spent_usd: float) -> bool:
        """Whether no further call may be made today."""
        return self.usd_per_day is not None and spent_usd >= self.usd_per_day

    def allows_unpriced(self, api_base: str | None) -> bool:
        """Whether calls whose cost cannot be counted may be made there."""
        return self.usd_per_day is None or may_go(api_base, self.unpriced)


@dataclass(frozen=True)
class KeepRules:
    """How long it keeps what it can get again, in days or minutes without use and in bytes; None: no limit."""

    run_days: int | None = RUN_DAYS
    workspace_days: int | None = 30
    mirror_days: int | None = 30
    workspace_space: int | None = None
    mirror_space: int | None = None
    model_library_minutes: int | None = 15


def _fits(name: str, patterns: Iterable[str] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)


def _plain(pattern: str) -> str:
    return pattern.removesuffix(".git").rstrip("/")


def _place(url: str) -> str:
    """`scheme://host[:port]/path` of any kind of address, with all that a server would resolve resolved."""
    if "://" not in url:
        host, colon, path = url.partition(":")
        is_scp = bool(colon) and "/" not in host
        url = f"ssh://{host}/{path.lstrip('/')}" if is_scp else f"file://{url}"
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2].lower()
    # Curl and servers resolve `..`, also if it is encoded: the pattern must be compared with what they resolve it to.
    path = posixpath.normpath("/" + unquote(parts.path).lstrip("/"))
    return f"{parts.scheme.lower()}://{place}{path}".removesuffix(".git")
