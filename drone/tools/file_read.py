"""file_read: view a file or a directory, read some lines, search, find (S-061)."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from heapq import nsmallest
from itertools import count, islice
from operator import attrgetter
from typing import BinaryIO

from drone.agent.values import ToolResult
from drone.sandbox.protocol import Check
from drone.tools.arguments import FileReadArguments, GlobArguments, GrepArguments
from drone.tools.beneath import directory_of, open_in
from drone.tools.paths import printable
from drone.tools.search import ENTRIES, Search
from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_short

VIEW_LINES = 400
VIEW_CHARACTERS = 16_000
"""Of a whole file; a longer one is read in parts, which models work better with (docs/prompts.md)."""
RANGE_LINES = 2000
RANGE_CHARACTERS = 40_000
"""Of lines that were asked for by number."""
LINE_CHARACTERS = 2000
"""The rest of a longer line is left out, with a note."""
_PROBE = 8192


@dataclass(frozen=True)
class FileRead:
    """Reads in the workspace, with bounded memory for files of any size."""

    search: Search
    check: Check

    def __call__(self, call: FileReadArguments) -> ToolResult:
        if call.mode == "search":
            if not call.search_pattern:
                raise WrongUse("mode `search` requires `search_pattern`, a regular expression")
            return self.search.grep(GrepArguments(pattern=call.search_pattern, path=call.path))
        if call.mode == "find":
            return self.search.glob(GlobArguments(pattern=call.search_pattern or "**", path=call.path, sort="name"))
        place = self.search.locate(call.path)
        first, last = _range(call)
        with ExitStack() as opened:
            directory = opened.enter_context(directory_of(place))
            descriptor = open_in(directory, place)
            opened.callback(os.close, descriptor)
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                return ToolResult(_listing(descriptor))
            file = opened.enter_context(os.fdopen(descriptor, "rb", closefd=False))
            return ToolResult(self._lines(file, call.path, first, last))

    def _lines(self, file: BinaryIO, given: str, first: int, last: int | None) -> str:
        """Number the requested lines; memory and answer stay small regardless of the file size."""
        if b"\0" in file.read(_PROBE):
            size = os.fstat(file.fileno()).st_size
            raise WrongUse(f"{given!r} is a binary file of {size:,} bytes; inspect it with shell: `file` or `xxd`")
        file.seek(0)
        wanted = islice(self._each_line(file), first - 1, last)
        bounds = (VIEW_LINES, VIEW_CHARACTERS) if first == 1 and last is None else (RANGE_LINES, RANGE_CHARACTERS)
        text, next_line, more = _numbered(wanted, first, *bounds)
        if not text:
            return "(the file is empty)" if first == 1 else f"(the file has fewer than {first} lines)"
        if not more:
            return text
        return (
            f'{text}\n(more follows; continue with {{"mode": "lines", "path": {given!r}, "start_line": {next_line}}})'
        )

    def _each_line(self, file: BinaryIO) -> Iterator[str]:
        """Yield each line, cut at LINE_CHARACTERS; a line of 5 GB is read in pieces."""
        count = 0
        while piece := file.readline(_PROBE):
            whole = piece
            while not piece.endswith(b"\n") and (piece := file.readline(_PROBE)):
                count += 1
                whole = whole if len(whole) > 4 * LINE_CHARACTERS else whole + piece
                if count % 1000 == 0:
                    self.check()
            count += 1
            if count % 10_000 == 0:
                self.check()
            text = whole.decode(errors="replace").removesuffix("\n").removesuffix("\r")
            yield text if len(text) <= LINE_CHARACTERS else f"{cut_short(text, LINE_CHARACTERS)} [… the line continues]"


def _range(call: FileReadArguments) -> tuple[int, int | None]:
    if call.start_line is None and call.mode == "lines":
        raise WrongUse("mode `lines` requires `start_line`, and `end_line` unless you want the rest")
    first = call.start_line or 1
    if call.end_line is not None and call.end_line < first:
        raise WrongUse(f"end_line {call.end_line} comes before start_line {first}")
    # To get the rest of a file, models ask for more lines than `islice` can count.
    return min(first, sys.maxsize), call.end_line and min(call.end_line, sys.maxsize)


def _numbered(lines: Iterator[str], first: int, most: int, room: int) -> tuple[str, int, bool]:
    """Return at most `most` lines of `room` characters with their numbers, the next number, and whether it exists."""
    pieces: list[str] = []
    number = first
    for line in lines:
        if room <= 0 or len(pieces) >= most:
            return "\n".join(pieces), number, True
        pieces.append(f"{number:6}\t{line}".replace("\0", "\N{SYMBOL FOR NULL}"))
        room -= len(pieces[-1])
        number += 1
    return "\n".join(pieces), number, False


def _listing(directory: int) -> str:
    """The entries of an open directory: directories with a slash, links with their target, files with their size."""
    number = count()
    with os.scandir(directory) as entries:
        # Even with a million entries, only those that are shown are kept.
        first = nsmallest(5 * ENTRIES, (entry for entry in entries if next(number) >= 0), key=attrgetter("name"))
    lines = [_entry_line(directory, entry) for entry in first]
    if (more := next(number) - len(lines)) > 0:
        lines.append(f"(and {more:,} more)")
    return "\n".join(lines) or "(the directory is empty)"


def _entry_line(directory: int, entry: os.DirEntry[str]) -> str:
    name = printable(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {printable(os.readlink(entry.name, dir_fd=directory))}"
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return f"{name}  (no longer exists)"
    return f"{name}  ({status.st_size:,} bytes)" if stat.S_ISREG(status.st_mode) else f"{name}  (not a file)"
