"""Paths given by a model: absolute or relative to the workspace, symlinks resolved, and always inside it."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_short


@dataclass(frozen=True)
class LocatedPath:
    """A path that was inside when it was resolved. To open it, use `beneath`, because commands may change it."""

    root: Path
    """The workspace, or the readable directory that contains it, as a real path."""
    path: Path
    given: str
    """The path as the model wrote it, for messages."""

    @property
    def directories(self) -> tuple[str, ...]:
        """The names of the directories between `root` and the file."""
        return self.path.relative_to(self.root).parts[:-1]

    @property
    def name(self) -> str:
        """The name in its directory; a dot for `root` itself."""
        return "." if self.path == self.root else self.path.name


def locate(workspace: Path, given: str, readable: Sequence[Path] = ()) -> LocatedPath:
    """Return the place of a path given by the model, to open it; it need not exist.

    Raises WrongUse for a path outside the workspace and `readable`, also if a symlink leads there (S-060).
    """
    root = workspace.resolve()
    try:
        path = (root / given).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise WrongUse(f"{cut_short(given, 200)!r} is not a valid path: {error}") from error
    for top in (root, *map(Path.resolve, readable)):
        if path.is_relative_to(top):
            return LocatedPath(top, path, given)
    raise WrongUse(f"{cut_short(given, 200)!r} is outside the workspace {root}; give a path inside it")


def shown(workspace: Path, path: Path) -> str:
    """The path as the model should use it: relative to the workspace, absolute if it is elsewhere."""
    root = workspace.resolve()
    return printable((path.relative_to(root) if path.is_relative_to(root) else path).as_posix())


def printable(name: str) -> str:
    """File names are bytes: a name that is not UTF-8 must not break the transcript."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def is_special(path: Path) -> bool:
    """Whether the path exists and is neither file, directory nor symlink."""
    try:
        return is_special_mode(path.lstat().st_mode)
    except OSError:
        return False


def is_special_mode(mode: int) -> bool:
    """Whether this is the mode of a FIFO, a device or a socket."""
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
