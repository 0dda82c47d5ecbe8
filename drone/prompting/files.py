"""Reads foreign text files: bounded, only plain files, and without ever raising."""

from __future__ import annotations

import codecs
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shared.foreign_text import encoding_of

MAX_CHARACTERS = 40_000
"""Maximum characters of one file in the prompt."""
_MAX_BYTES = 4 * (MAX_CHARACTERS + 1)


@dataclass(frozen=True)
class TextFiles(ABC):
    """Foreign text files. A problem with a file is added to `problems`, and the file is skipped."""

    shown_in: str
    """What messages have before the name of a file, such as `.dronefleet/`."""
    problems: list[str] = field(default_factory=list, kw_only=True)

    def text(self, name: str) -> str:
        """Return a file's text, stripped and cut at MAX_CHARACTERS with a note; empty if there is no text."""
        text = self.whole(name)
        if text is None:
            return ""
        if len(text) > MAX_CHARACTERS:
            self.problem(name, f"is longer than {MAX_CHARACTERS:,} characters; the rest was left out")
            text = f"{text[:MAX_CHARACTERS]}\n[{Path(name).name} continues; the rest is not shown]"
        return text.strip()

    def whole(self, name: str) -> str | None:
        """Return a file's text, or slightly more than MAX_CHARACTERS of it; None if it is missing or unusable."""
        try:
            content = self._content(name)
            return None if content is None else _decoded(content)
        except OSError as error:
            self.problem(name, f"cannot be read: {error.strerror}")
        except ValueError as error:
            self.problem(name, str(error))
        return None

    def problem(self, name: str, what: str) -> None:
        """Record a problem with a file."""
        self.problems.append(f"{self.shown_in}{name} {what}.")

    @abstractmethod
    def _content(self, name: str) -> bytes | None:
        """The first _MAX_BYTES + 1 bytes; None if there is none. Raises OSError, or ValueError with the reason."""


@dataclass(frozen=True)
class ReadFiles(TextFiles):
    """Files that the caller has read, or the beginning of them."""

    contents: Mapping[str, bytes]

    def first(self) -> str:
        """Return the text of the first file that has one."""
        return next(filter(None, map(self.text, self.contents)), "")

    def _content(self, name: str) -> bytes | None:
        return self.contents[name][: _MAX_BYTES + 1]


@dataclass(frozen=True)
class Folder(TextFiles):
    """A directory."""

    path: Path
    links: bool
    """Whether links are followed: allowed for the owner's directory, but not for a repository."""

    def _content(self, name: str) -> bytes | None:
        path = self.path / name
        try:
            status = path.stat() if self.links else path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        # Checked before opening: opening a FIFO or a device may block, or have side effects.
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"is {_kind(status.st_mode)}, not a file")
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if self.links else os.O_NOFOLLOW)
        with os.fdopen(os.open(path, flags), "rb") as file:
            return file.read(_MAX_BYTES + 1)


def _decoded(content: bytes) -> str:
    encoding = encoding_of(content)
    try:
        # Final only if this is the whole file: otherwise the end may be in the middle of a character.
        text = codecs.getincrementaldecoder(encoding)().decode(content, len(content) <= _MAX_BYTES)
    except UnicodeDecodeError as error:
        raise ValueError(f"is not {encoding.removesuffix('-sig').upper()}: byte {error.start}") from error
    if "\0" in text:
        raise ValueError("is not text: it contains NUL")
    return text


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a link" if stat.S_ISLNK(mode) else "a FIFO, a device or a socket"
