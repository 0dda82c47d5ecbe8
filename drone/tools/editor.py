"""editor: replace a text that occurs once, insert lines, undo the last edit of a file (S-063).

Works on bytes, so that everything outside the edit is unchanged: encoding, line ends, a missing final newline. The
model sees neither line ends nor a byte order mark: a text matches lines with any end, and each line keeps its own.
"""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from drone.agent.values import ToolResult
from drone.tools.arguments import EditorArguments
from drone.tools.beneath import check_writable, directory_of, open_in, replace_content
from drone.tools.file_write import LARGEST, MARKS, as_bytes
from drone.tools.paths import LocatedPath, locate, shown
from drone.tools.syntax import SyntaxFeedback
from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_short

_CONTEXT = 3
_OCCURRENCES = 5
_REPLACE = "str_replace requires `new_str`, and `old_str`, which must not be empty"


@dataclass(frozen=True)
class _Edit:
    before: bytes
    after: bytes


@dataclass(frozen=True)
class Editor:
    """Edits files in the workspace; remembers the last edit of each file for the duration of the run."""

    workspace: Path
    syntax: SyntaxFeedback
    edits: dict[Path, _Edit] = field(default_factory=dict)

    def __call__(self, call: EditorArguments) -> ToolResult:
        place = locate(self.workspace, call.path)
        # The same directory for reading and writing, even if another one takes its name meanwhile.
        with directory_of(place) as directory:
            check_writable(directory, place)
            before = _content(directory, place)
            if call.command == "undo_edit":
                return self._undo(directory, place, before)
            after, line = _edited(before, call, place)
            replace_content(directory, place, after)
        self.edits[place.path] = _Edit(before, after)
        note = self.syntax.note(place.path, before, after)
        return ToolResult(f"edited {shown(self.workspace, place.path)}; it now reads:\n{_around(after, line)}{note}")

    def _undo(self, directory: int, place: LocatedPath, now: bytes) -> ToolResult:
        name = shown(self.workspace, place.path)
        edit = self.edits.get(place.path)
        if edit is None:
            raise WrongUse(f"no edit of {name!r} to undo; only the last edit can be undone")
        if edit.after != now:
            raise WrongUse(f"{name!r} was changed by something else since its last edit; fix it with str_replace")
        replace_content(directory, place, edit.before)
        del self.edits[place.path]
        return ToolResult(f"undid the last edit of {name}")


def _content(directory: int, place: LocatedPath) -> bytes:
    with os.fdopen(open_in(directory, place), "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise WrongUse(f"{place.given!r} is larger than {LARGEST:,} bytes; edit it with shell, for example with sed")
    return content


def _edited(before: bytes, call: EditorArguments, place: LocatedPath) -> tuple[bytes, int]:
    """Return the new content, and the number of the line where it changed."""
    mark = next((mark for mark in MARKS if before.startswith(mark)), b"")
    if mark not in (b"", codecs.BOM_UTF8):
        raise WrongUse(
            f"{place.given!r} is encoded as {MARKS[mark]}, not as UTF-8; edit it with shell, or convert it first"
        )
    edit = _replaced if call.command == "str_replace" else _inserted
    after, line = edit(before.removeprefix(mark), call)
    if not (call.new_str or "").isascii() and not _is_utf8(before):
        raise WrongUse(
            f"{place.given!r} is not encoded as UTF-8, and new_str has characters beyond ASCII: the file would have "
            "two encodings; edit it with shell, or convert it first"
        )
    return mark + after, line


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _replaced(content: bytes, call: EditorArguments) -> tuple[bytes, int]:
    if call.new_str is None:
        raise WrongUse(_REPLACE)
    old, new, flat = _given(call.old_str or "", "old_str"), _flat(_given(call.new_str, "new_str")), _flat(content)
    if not old:
        raise WrongUse(_REPLACE)
    if old not in flat:
        old = _flat(old)
    count = flat.count(old)
    if count == 0:
        within = " (lines of this file contain carriage returns, CR)" if b"\r" in flat else ""
        raise WrongUse(
            f"old_str does not occur in the file; read it again and give the exact text with whitespace{within}"
        )
    if count > 1:
        lines = ", ".join(map(str, _lines_with(flat, old)))
        raise WrongUse(
            f"old_str occurs {count} times, in lines {lines}; include more of the lines around it, to make it unique"
        )
    at = flat.index(old)
    start, end = _position(content, flat, at), _position(content, flat, at + len(old))
    after = content[:start] + _with_ends(new, content[start:end], _end_at(content, start)) + content[end:]
    if after == content and call.old_str != call.new_str:
        raise WrongUse("the edit changes nothing: lines keep their ends; to convert them, use shell")
    return after, flat.count(b"\n", 0, at) + 1


def _given(text: str, argument: str) -> bytes:
    return as_bytes(text.removeprefix("\ufeff"), argument)


def _flat(text: bytes) -> bytes:
    """The text with all lines ended by LF, as the model sees it."""
    return text.replace(b"\r\n", b"\n")


def _position(content: bytes, flat: bytes, at: int) -> int:
    """Where a position of the flat text is in the content."""
    line = flat.count(b"\n", 0, at)
    column = at - (flat.rfind(b"\n", 0, at) + 1)
    return len(content) - len(content.split(b"\n", line)[line]) + column


def _end_at(content: bytes, position: int) -> bytes:
    """How the line at a position ends; if it is the last one, which may have no end, how the one before it ends."""
    at = content.find(b"\n", position)
    at = content.rfind(b"\n", 0, position) if at < 0 else at
    return b"\r\n" if at > 0 and content[at - 1 : at] == b"\r" else b"\n"


def _with_ends(new: bytes, old: bytes, end: bytes) -> bytes:
    """The new text with the line ends of the text that it replaces.

    Lines that are equal at the beginning and at the end keep their own ends, those in between take the ends in their
    order, and further ones that of the line before them. `end` is for a text without line ends.
    """
    lines, before = new.split(b"\n"), old.split(b"\n")
    ends = [b"\r\n" if line.endswith(b"\r") else b"\n" for line in before[:-1]]
    texts = [line.removesuffix(b"\r") for line in before[:-1]] + before[-1:]
    same = takewhile(lambda pair: pair[0] == pair[1], zip(reversed(lines), reversed(texts), strict=False))
    tail = min(max(0, sum(1 for _ in same) - 1), len(ends))
    written = list[bytes]()
    for number, line in enumerate(lines[:-1]):
        left = len(lines) - 1 - number
        if left <= tail:
            end = ends[-left]
        elif number < len(ends) - tail:
            end = ends[number]
        written.append(line + end)
    return b"".join([*written, lines[-1]])


def _lines_with(content: bytes, old: bytes) -> list[int | str]:
    """The numbers of the first lines in which `old` begins."""
    found: list[int | str] = []
    position = -1
    while (position := content.find(old, position + 1)) >= 0:
        if len(found) == _OCCURRENCES:
            return [*found, "…"]
        found.append(content.count(b"\n", 0, position) + 1)
    return found


def _inserted(content: bytes, call: EditorArguments) -> tuple[bytes, int]:
    if call.new_str is None or call.insert_line is None:
        raise WrongUse("insert requires `new_str` and `insert_line`")
    lines = _lines(content)
    if call.insert_line > len(lines) + 1:
        raise WrongUse(f"the file has {len(lines)} lines: insert_line must be 1 to {len(lines) + 1}")
    head, tail = lines[: call.insert_line - 1], lines[call.insert_line - 1 :]
    end = _end_at(content, sum(map(len, head)))
    new = _flat(_given(call.new_str, "new_str")).replace(b"\n", end)
    # A last line without a newline gets one, or the new text would become part of it.
    if head and not head[-1].endswith(b"\n"):
        head[-1] += end
    if tail and not new.endswith(b"\n"):
        new += end
    return b"".join([*head, new, *tail]), call.insert_line


def _lines(content: bytes) -> list[bytes]:
    """Split at newlines only; `splitlines` would also split at a lone carriage return."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _around(content: bytes, line: int) -> str:
    lines = content.decode(errors="replace").split("\n")
    first = max(1, line - _CONTEXT)
    shown = (cut_short(text.rstrip(), 400) for text in lines[first - 1 : line + 6])
    return "\n".join(f"{number:6}\t{text}" for number, text in enumerate(shown, first))
