"""file_write: write the whole content of a file and create its parent directories (S-062)."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

from drone.agent.values import ToolResult
from drone.tools.arguments import FileWriteArguments
from drone.tools.beneath import check_writable, made_directory_of, open_in, replace_content
from drone.tools.paths import LocatedPath, locate, shown
from drone.tools.syntax import SyntaxFeedback
from drone.tools.wrong_use import WrongUse

LARGEST = 10 * 1024 * 1024
"""Bytes of a file that is edited, or whose form is kept when it is written."""
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
"""Byte order marks and their encodings. The first that fits counts: that of UTF-32 begins with that of UTF-16."""


@dataclass(frozen=True)
class FileWrite:
    """Writes files in the workspace.

    A file that is replaced keeps its form, of which the model sees nothing: its byte order mark with the encoding, and
    CR LF if all its lines end so.
    """

    workspace: Path
    syntax: SyntaxFeedback

    def __call__(self, call: FileWriteArguments) -> ToolResult:
        place = locate(self.workspace, call.path)
        content = as_bytes(call.content, "content")
        with made_directory_of(place) as directory:
            check_writable(directory, place)
            existing = _existing(directory, place)
            content, kept = _in_form_of(existing, content)
            replace_content(directory, place, content)
        note = self.syntax.note(place.path, existing or None, content)
        return ToolResult(f"wrote {len(content):,} bytes to {shown(self.workspace, place.path)}{kept}{note}")


def _existing(directory: int, place: LocatedPath) -> bytes:
    """The content that is replaced; empty if there is none, or if it is larger than what is edited."""
    try:
        descriptor = open_in(directory, place)
    except WrongUse:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(LARGEST + 1)
    return content if len(content) <= LARGEST else b""


def _in_form_of(existing: bytes, content: bytes) -> tuple[bytes, str]:
    """Return the content in the form of the existing one, and a note about it."""
    mark = next((mark for mark in MARKS if existing.startswith(mark)), b"")
    encoding = MARKS.get(mark, "utf-8")
    before, text = existing[len(mark) :].decode(encoding, "replace"), content.decode().removeprefix("\ufeff")
    windows = "\r\n" in before and before.count("\n") == before.count("\r\n") and "\n" in text
    if windows:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    if not mark and not windows:
        return content, ""
    kept = [f"byte order mark ({encoding})"] * bool(mark) + ["line ends (CR LF)"] * windows
    return mark + text.encode(encoding), f" (kept: {' and '.join(kept)}; to change that, use shell)"


def as_bytes(text: str, argument: str) -> bytes:
    """The text as UTF-8.

    Raises WrongUse for half a surrogate pair, which is valid in JSON but not in a file.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise WrongUse(
            f"`{argument}` contains half of a surrogate pair at character {error.start}; remove it"
        ) from error
