"""Where the lines of a comment are now: each is followed through the patches of the turns between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from control_plane.contract.declarations.reviews import ReviewCommentDocument
from control_plane.core.patches.hunks import lines_of
from control_plane.core.patches.patch import FilePatch, read_patch

Where = Literal["", "moved", "hidden", "gone"]
"""Whether the lines of a comment are where they were, elsewhere, not among the lines of the diff, or changed since."""


@dataclass(frozen=True)
class Standing:
    """Where a comment belongs in the shown diff."""

    line: int = 0
    """Its last line, on its side; 0: it belongs to the file."""
    where: Where = ""


@dataclass(frozen=True)
class Follower:
    """Finds the lines of comments in the shown diff of an order."""

    order: str
    is_branch: bool
    """Whether the shown diff is that of the whole branch, whose old side no turn changes."""
    files: Mapping[str, FilePatch]
    """Of the shown diff, by path."""
    turns: Sequence[tuple[str, bytes]] = ()
    """The patches of the turns, each against what it started from, from that of the oldest comment to the order's."""
    _sides: dict[tuple[str, str], Mapping[int, str]] = field(default_factory=dict)

    def standing(self, comment: ReviewCommentDocument) -> Standing:
        if comment.start_line is None:
            return Standing()
        last = comment.end_line or comment.start_line
        is_earlier = comment.order != self.order
        if is_earlier and comment.side == "old" and not self.is_branch:
            return Standing(0, "gone")
        near = self._followed(comment.order, comment.path, last) if is_earlier and comment.side == "new" else last
        if near is None:
            return Standing(0, "gone")
        lines = self._lines(comment.path, comment.side)
        found = _found(lines, [line[1:] for line in comment.quote.split("\n")], near)
        if found is None:
            return Standing(0, "gone" if near in lines or not is_earlier else "hidden")
        return Standing(found, "" if found == last else "moved")

    def _followed(self, order: str, path: str, line: int) -> int | None:
        """The line in the order's version of the file; None if a turn since then removed or rewrote it."""
        for files in self._after(order):
            file = files.get(path)
            moved = line if file is None else _moved(file, line)
            if moved is None:
                return None
            line = moved
        return line

    def _after(self, order: str) -> Sequence[Mapping[str, FilePatch]]:
        ids = [each for each, _ in self._by_turn]
        return [files for _, files in self._by_turn[ids.index(order) + 1 if order in ids else 0 :]]

    @cached_property
    def _by_turn(self) -> list[tuple[str, Mapping[str, FilePatch]]]:
        return [(order, {each.path: each for each in read_patch(patch)}) for order, patch in self.turns]

    def _lines(self, path: str, side: str) -> Mapping[int, str]:
        """The lines of a file that the diff has on this side, with their numbers."""
        if (path, side) not in self._sides and (file := self.files.get(path)) is not None:
            code = [line for line in lines_of(file) if line.sign in {"same", "add", "del"}]
            old = {line.old: line.text for line in code if line.old is not None}
            new = {line.new: line.text for line in code if line.new is not None}
            self._sides[path, "old"], self._sides[path, "new"] = old, new
        return self._sides.get((path, side), {})


def _moved(file: FilePatch, number: int) -> int | None:
    """The new number of a line of the old side; None if the patch removes it."""
    shift = 0
    for line in lines_of(file):
        if line.sign == "hunk" and (line.old or 0) > number:
            break
        if line.sign in {"same", "del"} and line.old == number:
            return line.new
        shift += (line.sign == "add") - (line.sign == "del")
    return number + shift


def _found(lines: Mapping[int, str], quote: Sequence[str], near: int) -> int | None:
    """The last line of the place nearest to `near` with the quoted lines."""
    places = (
        number
        for number, text in lines.items()
        if text == quote[-1] and all(lines.get(number - back) == each for back, each in enumerate(reversed(quote)))
    )
    return min(places, key=lambda number: abs(number - near), default=None)
