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
        _make_directory(path.parent)
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
    """Replace the content atomically: a full disk leaves the old file unchanged. The file keeps its mode and owner.

    A new file belongs to the owner of its directory. Raises WrongUse when that is not possible.
    """
    old = path.stat() if path.exists() else None
    fresh = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.new")
    try:
        with fresh.open("xb") as file:
            file.write(content)
            _own_like(file.fileno(), old or path.parent.stat())
            if old is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        fresh.replace(path)
    except BaseException as error:
        with suppress(OSError):
            fresh.unlink()
        if isinstance(error, OSError):
            # The error names the requested file, not the temporary one next to it.
            raise WrongUse(f"{path.name!r} cannot be written: {error.strerror}; it is unchanged") from error
        raise


def _make_directory(path: Path) -> None:
    """Make a directory and its parents; each belongs to the owner of the one above it."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        _own_like(each, each.parent.stat())


def _own_like(target: Path | int, other: os.stat_result) -> None:
    """Only root can: on its drones, the workspace belongs to the account of the commands."""
    if os.geteuid() == 0:
        os.chown(target, other.st_uid, other.st_gid)
