"""Where extensions and guardrails come from, and the reading of their files within bounds."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Literal

GROUP = "dronefleet.extensions"
"""The group of entry points by which an installed package brings extensions."""
LARGEST = 1_000_000
"""Bytes of a file that is taken."""
_SAYS_POLICY = re.compile(rb"(?m)^[ \t]*policy[ \t]*(?::[^=\n]+)?=[ \t]*True\b")

_WORDS = {"extension": "extension", "guardrail": "guardrail file"}

Kind = Literal["extension", "guardrail"]


@dataclass(frozen=True)
class Sources:
    """Directories that have `extensions/*.py` and `guardrails/*.py`; None or not there: nothing from it."""

    drone: Path | None = None
    """The drone's home: what its owner put there."""
    project: Path | None = None
    """What the repository's default branch has in `.dronefleet/`; None unless the owner's policy allows it."""
    entry_points: bool = True
    """Also what is installed beside the drone."""


@dataclass(frozen=True)
class Found:
    """Something to load."""

    kind: Kind
    name: str
    """Without its ending."""
    source: str
    """In words."""
    path: Path | None = None
    entry_point: EntryPoint | None = None


class UnreadableSource(Exception):
    """A file that cannot be read as an extension or guardrail; the text says why."""


def found_in(directory: Path | None, kind: Kind, owner: str) -> list[Found]:
    """The files of one kind, by name; those that begin with `_` or `.` are left out. Raises OSError."""
    if directory is None:
        return []
    place = directory / f"{kind}s"
    try:
        names = sorted(os.listdir(place))  # noqa: PTH208 - names that are not text must not raise
    except FileNotFoundError:
        return []
    return [
        Found(kind, Path(name).stem, f"the {_WORDS[kind]} {kind}s/{name} of the {owner}", path=place / name)
        for name in names
        if name.endswith(".py") and not name.startswith(("_", "."))
    ]


def installed() -> list[Found]:
    """The extensions that installed packages bring, by name."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [
        Found("extension", point.name, f"the installed extension {point.name} ({point.value})", entry_point=point)
        for point in points
    ]


def content(path: Path) -> bytes:
    """A file's bytes. Raises UnreadableSource, or OSError."""
    # Without waiting: opening a FIFO that nobody writes to would never return.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnreadableSource("it is not a file")
        return file.read(LARGEST + 1)


def text(found: bytes) -> str:
    """A file's text. Raises UnreadableSource for one that is too large or not UTF-8."""
    if len(found) > LARGEST:
        raise UnreadableSource(f"it is larger than {LARGEST:,} bytes")
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableSource(f"it is not UTF-8 (byte {error.start})") from error


def says_policy(found: bytes) -> bool:
    """Whether a file declares itself, or a rule of its own, to be a policy: asked where it could not be loaded."""
    return _SAYS_POLICY.search(found) is not None
