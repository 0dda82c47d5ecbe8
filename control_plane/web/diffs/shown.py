"""What a page shows of a patch: as many lines at once as a browser draws quickly, the rest on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from control_plane.core.patches.hunks import Line, Sign, lines_of
from control_plane.core.patches.patch import FilePatch
from control_plane.web.diffs.code_text import attribute, code_html
from control_plane.web.diffs.labels import labels_of, path_key, section_id, shown_path
from control_plane.web.diffs.rows import Cell, DiffRow, View, groups_of, without_space
from control_plane.web.diffs.syntax import Spans, colours_of, language_of

NODES = 1200
"""Elements of a page's files at first; around them there are up to 300 more."""
FILE_NODES = 24
ROW_NODES, COLOURED_NODES = 4, 8
FEWEST_LINES = 8
"""With less room than this, a file's lines are shown on demand."""
MORE_LINES = 300
"""Lines that are added on demand."""
MOST_LINES = 5000
"""Lines in one answer."""
FILES = 30
"""Files on one page."""


@dataclass(frozen=True)
class ShownCell:
    """One line on one side."""

    sign: Sign
    side: str
    """`old` or `new`: which side its number is of."""
    number: int | None
    html: Markup


@dataclass(frozen=True)
class ShownRow:
    """A row with what is below it."""

    sign: Sign
    cells: Sequence[ShownCell | None]
    places: Sequence[tuple[str, int]]
    """Side and number of its lines."""
    skipped: int = 0


@dataclass(frozen=True)
class ShownGroup:
    rows: Sequence[ShownRow]
    folded: bool


@dataclass(frozen=True)
class ShownFile:
    """One file, with the part of its lines that is shown."""

    file: FilePatch
    labels: Sequence[str]
    groups: Sequence[ShownGroup]
    start: int
    """The first line that is shown, counted within the file's part of the patch."""
    upto: int
    """The first line that is not."""
    more: bool
    """Whether there are lines behind it."""
    is_viewed: bool

    @property
    def name(self) -> str:
        return shown_path(self.file.path)

    @property
    def attribute(self) -> Markup:
        return attribute(self.file.path)

    @property
    def key(self) -> str:
        return path_key(self.file.path)

    @property
    def id(self) -> str:
        return section_id(self.file)

    @property
    def places(self) -> set[tuple[str, int]]:
        return {place for group in self.groups for row in group.rows for place in row.places}


@dataclass(frozen=True)
class DiffOptions:
    """What a reader asks for, beyond what a page shows at first."""

    view: View = "unified"
    opened: Mapping[str, int] | None = None
    """How many lines of a file are shown, by its key."""
    viewed: frozenset[str] = frozenset()
    """Digests of files whose lines are not shown, because the reader has seen them."""
    after: int = 0
    """Files before this page."""
    without_space: bool = False
    """Whether lines that differ in blanks alone are shown as unchanged."""
    taken: int = 0
    """Elements that are on the page besides the files."""


def shown_files(files: Sequence[FilePatch], options: DiffOptions) -> list[ShownFile]:
    """The files of one page: the first lines of each, until there is enough."""
    found: list[ShownFile] = []
    opened = options.opened or {}
    of_page = files[options.after : options.after + FILES]
    room, room_for_opened = NODES - options.taken - FILE_NODES * len(of_page), MOST_LINES
    for file in of_page:
        key = path_key(file.path)
        cost = _cost(file, options.view)
        lines = max(0, room) // cost
        if file.digest in options.viewed or lines < FEWEST_LINES:
            lines = 0
        if key in opened:
            lines = min(opened[key], room_for_opened)
            room_for_opened -= lines
        shown = shown_part(file, 0, lines, options)
        room -= cost * shown.upto if key not in opened else 0
        found.append(shown)
    return found


def shown_part(file: FilePatch, start: int, count: int, options: DiffOptions) -> ShownFile:
    """Some lines of a file."""
    lines = list(islice(lines_of(file), start, start + count + 1))
    more, lines = len(lines) > count, lines[:count]
    return ShownFile(
        file=file,
        labels=list(labels_of(file)),
        groups=list(_groups(file, list(without_space(lines)) if options.without_space else lines, options.view)),
        start=start,
        upto=start + len(lines),
        more=more,
        is_viewed=file.digest in options.viewed,
    )


def _cost(file: FilePatch, view: View) -> int:
    """Elements per line: a row, its number, its text, and the colours within."""
    return (COLOURED_NODES if language_of(file.path) else ROW_NODES) + (2 if view == "split" else 0)


def _groups(file: FilePatch, lines: Sequence[Line], view: View) -> Iterator[ShownGroup]:
    colours = colours_of(file.path, lines)
    if sum(map(len, colours.values())) > COLOURED_NODES * len(lines):
        colours = {}
    drawing = _Drawing(file.has_crlf, {id(lines[index]): spans for index, spans in colours.items()})
    for group in groups_of(lines, view):
        yield ShownGroup([drawing.row(row) for row in group.rows], group.folded)


@dataclass(frozen=True)
class _Drawing:
    """How the lines of one file are drawn."""

    has_crlf: bool
    colours: Mapping[int, Spans]

    def row(self, row: DiffRow) -> ShownRow:
        line = row.first.line
        two = len(row.cells) == 2
        cells = [self._cell(each, "old" if two and not place else "new") for place, each in enumerate(row.cells)]
        places = [
            (side, number)
            for cell in row.cells
            if cell is not None and line.sign != "hunk"
            for side, number in (("old", cell.line.old), ("new", cell.line.new))
            if number is not None
        ]
        return ShownRow(line.sign, cells, list(dict.fromkeys(places)), line.skipped)

    def _cell(self, cell: Cell | None, column: str) -> ShownCell | None:
        if cell is None:
            return None
        line = cell.line
        side = "old" if line.sign == "del" or (line.sign == "same" and column == "old") else "new"
        text = line.text.removesuffix("\r") if self.has_crlf else line.text
        html = code_html(text, cell.words, self.colours.get(id(line), ()))
        return ShownCell(line.sign, side, line.old if side == "old" else line.new, html)
