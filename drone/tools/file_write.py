"""file_write: write the whole content of a file and create its parent directories (S-062)."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from drone.agent.values import ToolResult
from drone.tools.arguments import FileWriteArguments
from drone.tools.paths import check_writable, resolve, shown
from drone.tools.wrong_use import WrongUse


@dataclass(frozen=True)
class FileWrite:
    """Writes files in the workspace."""

    workspace: Path

    def __call__(self, call: FileWriteArguments) -> ToolResult:
        path = resolve(self.workspace, call.path)
        check_writable(path, call.path)
        content = as_bytes(call.content, "content")
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_content(path, content)
        return ToolResult(f"wrote {len(content):,} bytes to {shown(self.workspace, path)}")


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


def replace_content(path: Path, content: bytes) -> None:
    """Replace the content atomically: a full disk leaves the old file unchanged. The file keeps its mode.

    Raises WrongUse when that is not possible.
    """
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    fresh = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.new")
    try:
        with fresh.open("xb") as file:
            file.write(content)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        fresh.replace(path)
    except BaseException as error:
        with suppress(OSError):
            fresh.unlink()
        if isinstance(error, OSError):
            # The error names the requested file, not the temporary one next to it.
            raise WrongUse(f"{path.name!r} cannot be written: {error.strerror}; it is unchanged") from error
        raise
