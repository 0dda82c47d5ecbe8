"""file_write: write the whole content of a file and create its parent directories (S-062)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drone.agent.values import ToolResult
from drone.tools.arguments import FileWriteArguments
from drone.tools.beneath import check_writable, made_directory_of, replace_content
from drone.tools.paths import locate, shown
from drone.tools.syntax import SyntaxFeedback
from drone.tools.wrong_use import WrongUse


@dataclass(frozen=True)
class FileWrite:
    """Writes files in the workspace."""

    workspace: Path
    syntax: SyntaxFeedback

    def __call__(self, call: FileWriteArguments) -> ToolResult:
        place = locate(self.workspace, call.path)
        content = as_bytes(call.content, "content")
        with made_directory_of(place) as directory:
            check_writable(directory, place)
            replace_content(directory, place, content)
        note = self.syntax.note(place.path, None, content)
        return ToolResult(f"wrote {len(content):,} bytes to {shown(self.workspace, place.path)}{note}")


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
