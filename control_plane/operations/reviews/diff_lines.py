"""The lines of one file of a patch, by number and side, for the comments on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from control_plane.core.patches.hunks import Line, lines_of
from control_plane.core.patches.patch import read_patch

Side = Literal["old", "new"]
_SIGNS = {"add": "+", "del": "-", "same": " "}


@dataclass(frozen=True)
class FileDiff:
    """The lines of a file that a diff shows, by number and side, each with its sign."""

    path: str
    old: dict[int, str] = field(default_factory=dict)
    new: dict[int, str] = field(default_factory=dict)

    def side(self, side: Side) -> dict[int, str]:
        return self.old if side == "old" else self.new

    def shown(self, side: Side) -> str:
        """The ranges that the diff shows: `3-9, 20-24`; empty for a file without lines, such as a binary one."""
        ranges: list[list[int]] = []
        for number in self.side(side):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        return ", ".join(f"{first}-{last}" for first, last in ranges)


def file_diff(patch: bytes, path: str) -> FileDiff | None:
    """The lines of this file; None if the patch does not change it."""
    file = next((each for each in read_patch(patch) if each.path == path), None)
    if file is None:
        return None
    lines = [each for each in lines_of(file) if each.sign in _SIGNS]
    old = {each.old: _written(each) for each in lines if each.old is not None}
    new = {each.new: _written(each) for each in lines if each.new is not None}
    return FileDiff(path, old, new)


def paths_in(patch: bytes) -> list[str]:
    """The files that the patch changes."""
    return [each.path for each in read_patch(patch)]


def _written(line: Line) -> str:
    return f"{_SIGNS[line.sign]}{line.text}" if line.text or line.sign != "same" else ""
