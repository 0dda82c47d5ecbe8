"""Rows of a diff, on one side or two: changed lines are paired, long unchanged runs are folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, takewhile
from typing import Literal

from control_plane.core.patches.hunks import Line
from control_plane.web.diffs.words import Range, changed_words, likeness

View = Literal["unified", "split"]
MOST_COMPARED = 400
"""Pairs of lines in one change that are compared; the lines of a larger change are paired in order."""
MOST_PAIRED = 250_000
"""Pairs of lines in one change of which those that differ in blanks alone are found."""
LIKELY = 0.5
LONGEST_RUN, KEPT = 12, 3
"""Unchanged lines that are shown as they are, and those that stay around a fold."""


@dataclass(frozen=True)
class Cell:
    """A line, with the parts of it that differ from the line that it replaces, or is replaced by."""

    line: Line
    words: Sequence[Range] = ()


@dataclass(frozen=True)
class DiffRow:
    """One line in the unified view; in the split view the old and the new side; one may be empty."""

    cells: tuple[Cell | None, ...]

    @property
    def first(self) -> Cell:
        return next(each for each in self.cells if each is not None)

    @property
    def sign(self) -> str:
        return self.first.line.sign


@dataclass(frozen=True)
class RowGroup:
    """Rows that are shown together, or folded because nothing changed in them."""

    rows: Sequence[DiffRow]
    folded: bool = False


def groups_of(lines: Sequence[Line], view: View) -> list[RowGroup]:
    """The lines as rows."""
    found: list[RowGroup] = []
    for unchanged, run in groupby(rows_of(lines, view), key=lambda row: row.sign == "same"):
        rows = list(run)
        if unchanged and len(rows) > LONGEST_RUN:
            found += [RowGroup(rows[:KEPT]), RowGroup(rows[KEPT:-KEPT], folded=True), RowGroup(rows[-KEPT:])]
        else:
            found.append(RowGroup(rows))
    return found


def without_space(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines, where those that differ in blanks alone are one unchanged line: the new one."""
    for changed, run in groupby(lines, key=lambda line: line.sign in {"add", "del"}):
        block = list(run)
        old, new = ([line for line in block if line.sign == sign] for sign in ("del", "add"))
        if not changed or not old or not new or len(old) * len(new) > MOST_PAIRED:
            yield from block
            continue
        before, after = (["".join(line.text.split()) for line in side] for side in (old, new))
        for kind, start, end, to, to_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind == "equal":
                pairs = zip(old[start:end], new[to:to_end], strict=True)
                yield from (replace(now, sign="same", old=was.old) for was, now in pairs)
            else:
                yield from (*old[start:end], *new[to:to_end])


def rows_of(lines: Sequence[Line], view: View) -> Iterator[DiffRow]:
    """The lines as rows, in the order of the patch; in the split view each side keeps its order."""
    for changed, run in groupby(lines, key=lambda line: line.sign in {"add", "del", "note"}):
        if changed:
            yield from _changed(list(run), view)
        else:
            yield from (_both(line, view) for line in run)


def _both(line: Line, view: View) -> DiffRow:
    cell = Cell(line)
    return DiffRow((cell, cell)) if view == "split" and line.sign == "same" else DiffRow((cell,))


def _changed(lines: Sequence[Line], view: View) -> Iterator[DiffRow]:
    old = [index for index, line in enumerate(lines) if line.sign == "del"]
    new = [index for index, line in enumerate(lines) if line.sign == "add"]
    pairs = _pairs([lines[each].text for each in old], [lines[each].text for each in new])
    cells = [Cell(line) for line in lines]
    for before, after in pairs:
        at, to = old[before], new[after]
        if words := changed_words(lines[at].text, lines[to].text):
            cells[at], cells[to] = Cell(lines[at], words[0]), Cell(lines[to], words[1])
    if view == "unified":
        yield from (DiffRow((cell,)) for cell in cells)
        return
    # A note about an unchanged line is about both sides.
    for cell in takewhile(lambda cell: cell.line.sign == "note", cells):
        yield DiffRow((cell, cell))
    yield from _side_by_side(cells, [(old[before], new[after]) for before, after in pairs])


def _side_by_side(cells: Sequence[Cell], pairs: Sequence[tuple[int, int]]) -> Iterator[DiffRow]:
    """Both sides in their order; pairs in one row, and between pairs each side fills up from the top."""
    sides = [_columns(cells, "del"), _columns(cells, "add")]
    done = [0, 0]
    stops = [tuple(sides[side].index(index) for side, index in enumerate(pair)) for pair in pairs]
    for stop in [*stops, (len(sides[0]), len(sides[1]))]:
        between = [sides[side][done[side] : stop[side]] for side in (0, 1)]
        for place in range(max(map(len, between))):
            yield _pair(cells, [side[place] if place < len(side) else None for side in between])
            yield from _notes(cells, [side[place] for side in between if place < len(side)])
        if stop[0] < len(sides[0]) and stop[1] < len(sides[1]):
            matched = [sides[0][stop[0]], sides[1][stop[1]]]
            yield _pair(cells, matched)
            yield from _notes(cells, matched)
        done = [stop[0] + 1, stop[1] + 1]


def _columns(cells: Sequence[Cell], sign: str) -> list[int]:
    return [index for index, cell in enumerate(cells) if cell.line.sign == sign]


def _pair(cells: Sequence[Cell], indexes: Sequence[int | None]) -> DiffRow:
    return DiffRow(tuple(None if each is None else cells[each] for each in indexes))


def _notes(cells: Sequence[Cell], indexes: Sequence[int]) -> Iterator[DiffRow]:
    """The notes that follow these lines, each in the column of its line."""
    for index in indexes:
        for note in takewhile(lambda cell: cell.line.sign == "note", cells[index + 1 :]):
            yield DiffRow((note, None) if cells[index].line.sign == "del" else (None, note))


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Which old line became which new one, in order: those that are most alike."""
    if len(old) == len(new) or len(old) * len(new) > MOST_COMPARED:
        return list(zip(range(len(old)), range(len(new)), strict=False))
    best: list[list[float]] = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    alike = [[likeness(before, after) for after in new] for before in old]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            taken = alike[i][j] + best[i + 1][j + 1] if alike[i][j] >= LIKELY else 0.0
            best[i][j] = max(taken, best[i + 1][j], best[i][j + 1])
    return list(_way(best, alike))


def _way(best: list[list[float]], alike: list[list[float]]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(alike) and j < len(alike[0]):
        if alike[i][j] >= LIKELY and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
