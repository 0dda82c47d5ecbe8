"""file_read: view a file or a directory, read some lines, search, find (S-061)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from drone.agent.protocols import ToolResult
from drone.sandbox import Sandbox
from drone.sandbox.protocol import Check
from drone.tools.arguments import FileReadArguments
from drone.tools.paths import open_file, resolve, shown
from drone.tools.wrong_use import WrongUse

VIEW_LINES = 2000
VIEW_CHARACTERS = 40_000
LINE_CHARACTERS = 2000
"""Of a longer line the rest is left out, with a word."""
ENTRIES = 200
SEARCH_SECONDS = 30.0
_WALK_SECONDS = 10.0
_SKIPPED = ".git"
_PROBE = 8192


@dataclass(frozen=True)
class FileRead:
    """Reads in the workspace, and never more of a file than is shown."""

    workspace: Path
    sandbox: Sandbox
    check: Check

    def __call__(self, call: FileReadArguments) -> ToolResult:
        path = resolve(self.workspace, call.path)
        if call.mode == "search":
            return self._search(path, call)
        if call.mode == "find":
            return ToolResult(self._find(path, call))
        if path.is_dir():
            return ToolResult(_listing(path))
        first, last = _range(call)
        with open_file(path, call.path) as file:
            return ToolResult(self._lines(file, call.path, first, last))

    def _lines(self, file: BinaryIO, given: str, first: int, last: int | None) -> str:
        """Number the wanted lines; memory and answer stay small whatever the size of the file."""
        if b"\0" in file.read(_PROBE):
            size = os.fstat(file.fileno()).st_size
            raise WrongUse(f"{given!r} is a binary file of {size:,} bytes; look at it with shell, by `file` or `xxd`")
        file.seek(0)
        wanted = islice(self._each_line(file), first - 1, last)
        text, next_line, more = _numbered(wanted, first)
        if not text:
            return "(the file is empty)" if first == 1 else f"(the file has fewer than {first} lines)"
        if not more:
            return text
        return f'{text}\n(more follows; go on with {{"mode": "lines", "path": {given!r}, "start_line": {next_line}}})'

    def _each_line(self, file: BinaryIO) -> Iterator[str]:
        """Each line, cut at LINE_CHARACTERS; a line of 5 GB is passed over in pieces."""
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
            text = whole.decode(errors="replace").rstrip("\r\n")
            yield text if len(text) <= LINE_CHARACTERS else f"{text[:LINE_CHARACTERS]} [… the line goes on]"

    def _search(self, path: Path, call: FileReadArguments) -> ToolResult:
        """Let grep search inside the sandbox: an expression that takes for ever ends with its command."""
        if not call.search_pattern:
            raise WrongUse("mode `search` needs `search_pattern`, an extended regular expression")
        if not path.exists():
            raise WrongUse(f"there is no {call.path!r} to search in")
        grep = ["grep", "-rnIE", "-D", "skip", f"--exclude-dir={_SKIPPED}", "-e", call.search_pattern, "--"]
        result = self.sandbox.run(
            [*grep, shown(self.workspace, path) or "."],
            workspace=self.workspace,
            timeout=SEARCH_SECONDS,
            check=self.check,
        )
        if result.timed_out:
            note = f"\n(ended after {SEARCH_SECONDS:.0f} s; search a smaller directory)"
            return ToolResult(result.output + note, is_error=True)
        if result.return_code == 1 and not result.output:
            return ToolResult("(no line matches)")
        return ToolResult(result.output, is_error=result.return_code not in (0, 1), output_bytes=result.output_bytes)

    def _find(self, path: Path, call: FileReadArguments) -> str:
        if not path.is_dir():
            raise WrongUse(f"mode `find` needs a directory, and {call.path!r} is none")
        found: list[str] = []
        count = 0
        deadline = time.monotonic() + _WALK_SECONDS
        for name in _walk(path, self.workspace.resolve()):
            self.check()
            if call.search_pattern and not fnmatch(Path(name).name, call.search_pattern):
                continue
            count += 1
            if count <= ENTRIES:
                found.append(name)
            if time.monotonic() > deadline:
                return "\n".join([*found, f"(and more: counting was ended after {_WALK_SECONDS:.0f} s)"])
        if count > ENTRIES:
            found.append(f"(and {count - ENTRIES:,} more; find in a smaller directory, or give search_pattern)")
        return "\n".join(found) or "(nothing found)"


def _range(call: FileReadArguments) -> tuple[int, int | None]:
    if call.start_line is None and call.mode == "lines":
        raise WrongUse("mode `lines` needs `start_line`, and `end_line` unless the rest is wanted")
    first = call.start_line or 1
    if call.end_line is not None and call.end_line < first:
        raise WrongUse(f"end_line {call.end_line} comes before start_line {first}")
    return first, call.end_line


def _numbered(lines: Iterator[str], first: int) -> tuple[str, int, bool]:
    """The lines with their numbers, the number of the next one, and whether there is one."""
    pieces: list[str] = []
    room = VIEW_CHARACTERS
    number = first
    for line in lines:
        if room <= 0 or len(pieces) >= VIEW_LINES:
            return "\n".join(pieces), number, True
        pieces.append(f"{number:6}\t{line}".replace("\0", "\N{SYMBOL FOR NULL}"))
        room -= len(pieces[-1])
        number += 1
    return "\n".join(pieces), number, False


def _listing(path: Path) -> str:
    """The entries of a directory: directories with a slash, links with where they lead, files with their size."""
    with os.scandir(path) as entries:
        known = sorted(entries, key=lambda entry: entry.name)
    lines = [_entry_line(entry) for entry in known[: 5 * ENTRIES]]
    if len(known) > len(lines):
        lines.append(f"(and {len(known) - len(lines):,} more)")
    return "\n".join(lines) or "(the directory is empty)"


def _entry_line(entry: os.DirEntry[str]) -> str:
    name = _printable(entry.name)
    if entry.is_symlink():
        return f"{name} -> {_printable(str(Path(entry.path).readlink()))}"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    return f"{name}  ({entry.stat(follow_symlinks=False).st_size:,} bytes)"


def _walk(top: Path, root: Path) -> Iterator[str]:
    """All files below `top`, relative to `root`, in order of name; symlinks are named, not followed."""
    for directory, names, files in os.walk(top):
        names[:] = sorted(name for name in names if name != _SKIPPED)
        links = [name for name in names if Path(directory, name).is_symlink()]
        for name in sorted([*files, *links]):
            yield _printable(Path(directory, name).relative_to(root).as_posix())


def _printable(name: str) -> str:
    """File names are bytes: what is not UTF-8 must not break the transcript."""
    return name.encode(errors="surrogateescape").decode(errors="replace")
