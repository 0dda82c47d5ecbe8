"""editor: replace a text that occurs once, insert lines, undo the last edit of a file (S-063).

Works on bytes, so that everything outside the edit is unchanged: encoding, line endings, a missing final newline.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from drone.agent.values import ToolResult
from drone.tools.arguments import EditorArguments
from drone.tools.beneath import check_writable, directory_of, open_in, replace_content
from drone.tools.file_write import as_bytes
from drone.tools.paths import LocatedPath, locate, shown
from drone.tools.syntax import SyntaxFeedback
from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_short

LARGEST = 10 * 1024 * 1024
_CONTEXT = 3
_OCCURRENCES = 5


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
            after, line = _replaced(before, call) if call.command == "str_replace" else _inserted(before, call)
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


def _replaced(content: bytes, call: EditorArguments) -> tuple[bytes, int]:
    """Return the new content, and the number of the line where it changed."""
    if not call.old_str or call.new_str is None:
        raise WrongUse("str_replace requires `new_str`, and `old_str`, which must not be empty")
    old, new = as_bytes(call.old_str, "old_str"), as_bytes(call.new_str, "new_str")
    if _has_windows_lines(content):
        old, new = _windows_lines(old), _windows_lines(new)
    count = content.count(old)
    if count == 0:
        raise WrongUse("old_str does not occur in the file; read it again and give the exact text with whitespace")
    if count > 1:
        lines = ", ".join(map(str, _lines_with(content, old)))
        raise WrongUse(
            f"old_str occurs {count} times, in lines {lines}; include more of the lines around it, to make it unique"
        )
    position = content.index(old)
    return content.replace(old, new), content.count(b"\n", 0, position) + 1


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
    new = as_bytes(call.new_str, "new_str")
    windows = _has_windows_lines(content)
    new, end = (_windows_lines(new), b"\r\n") if windows else (new, b"\n")
    lines = _lines(content)
    if call.insert_line > len(lines) + 1:
        raise WrongUse(f"the file has {len(lines)} lines: insert_line must be 1 to {len(lines) + 1}")
    head, tail = lines[: call.insert_line - 1], lines[call.insert_line - 1 :]
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


def _has_windows_lines(content: bytes) -> bool:
    """Whether every line ends in CR LF; a file with mixed line endings is edited as is."""
    return b"\r\n" in content and content.count(b"\n") == content.count(b"\r\n")


def _windows_lines(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _around(content: bytes, line: int) -> str:
    lines = content.decode(errors="replace").split("\n")
    first = max(1, line - _CONTEXT)
    shown = (cut_short(text.rstrip(), 400) for text in lines[first - 1 : line + 6])
    return "\n".join(f"{number:6}\t{text}" for number, text in enumerate(shown, first))
