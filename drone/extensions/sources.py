"""Sources of extensions and guardrails, and bounded reading of their files."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Literal

GROUP = "dronefleet.extensions"
"""The entry point group through which installed packages provide extensions."""
LARGEST = 1_000_000
"""Maximum bytes of a file."""
_SAYS_POLICY = re.compile(rb"(?m)^[ \t]*policy[ \t]*(?::[^=\n]+)?=[ \t]*True\b")

_WORDS = {"extension": "extension", "guardrail": "guardrail file"}

Kind = Literal["extension", "guardrail"]


@dataclass(frozen=True)
class Sources:
    """Directories with `extensions/*.py` and `guardrails/*.py`; None or a missing directory provides nothing."""

    drone: Path | None = None
    """The drone's home, with the owner's files."""
    project: Path | None = None
    """`.dronefleet/` of the repository's default branch; None unless the owner's policy allows it."""
    entry_points: bool = True
    """Whether to include extensions of packages installed with the drone."""


@dataclass(frozen=True)
class Found:
    """An extension or guardrail to load."""

    kind: Kind
    name: str
    """Without the file extension."""
    source: str
    """Description for reports."""
    path: Path | None = None
    entry_point: EntryPoint | None = None


class UnreadableSource(Exception):
    """A file that cannot be read as an extension or guardrail; the text says why."""


def found_in(directory: Path | None, kind: Kind, owner: str) -> list[Found]:
    """Return the files of one kind, sorted by name; those that begin with `_` or `.` are skipped. Raises OSError."""
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
    """Return the extensions of installed packages, sorted by name."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [
        Found("extension", point.name, f"the installed extension {point.name} ({point.value})", entry_point=point)
        for point in points
    ]


def content(path: Path) -> bytes:
    """Return a file's bytes. Raises UnreadableSource or OSError."""
    # Non-blocking: opening a FIFO without a writer would never return.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnreadableSource("it is not a file")
        return file.read(LARGEST + 1)


def text(found: bytes) -> str:
    """Return a file's text. Raises UnreadableSource if it is too large or not UTF-8."""
    if len(found) > LARGEST:
        raise UnreadableSource(f"it is larger than {LARGEST:,} bytes")
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableSource(f"it is not UTF-8 (byte {error.start})") from error


def says_policy(found: bytes) -> bool:
    """Whether a file declares itself or one of its rules a policy; used when the file could not be loaded."""
    return _SAYS_POLICY.search(found) is not None
