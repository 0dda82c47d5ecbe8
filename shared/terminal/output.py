"""Output for a person's terminal or a script's pipe: colors, tables, one JSON document.

Messages go to stderr and results to stdout, so that a result can always be piped. Meaning never depends on color alone.
Foreign text (of a model, a server, a repository) goes through `printable` where it is put into a line. `put`, `say`,
`content_writer` and `RunScreen` are the only writers, and remove every escape sequence but colors.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TextIO

from shared.terminal.ansi import between_colors, uncolored
from shared.visible_text import JOINERS, visible, visible_prose

if TYPE_CHECKING:
    from rich.console import Console

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan", "output"]
"""`output`: a line of `ansi.safe_lines`, in its own colors."""
_SGR: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "output": "2",
}
_WITHOUT_JOINERS = dict.fromkeys(map(ord, JOINERS))
"""Terminals do not shape text: joiners would only be invisible there."""
_UNBOUNDED = 100_000
"""Columns of a stream that is not a terminal: nothing is cut or wrapped there."""
_GAP = 2
"""Spaces between two columns."""
_SHORTEST = 20
"""Prose is not cut below this width; a longer time or name is not prose."""
_NEVER_LEFT_OUT = 2
"""The first columns: what a row is, and its state."""


def coloured(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether to use color on `stream`: NO_COLOR, then FORCE_COLOR, then CLICOLOR, then whether it is a terminal."""
    env = os.environ if environ is None else environ
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR") or env.get("CLICOLOR_FORCE", "0") not in {"", "0"}:
        return True
    return env.get("CLICOLOR") != "0" and env.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, style: Style, stream: TextIO) -> str:
    """`text` in `style` if `stream` uses color, otherwise without any."""
    if style == "output" and "\x1b" in text:
        return text if coloured(stream) else uncolored(text)
    return f"\x1b[{_SGR[style]}m{text}\x1b[0m" if coloured(stream) else text


def printable(text: str) -> str:
    """Foreign text for a terminal: hidden characters are marked, and none of them can drive the terminal."""
    return visible_prose(text).translate(_WITHOUT_JOINERS)


def only_colored(text: str) -> str:
    """Our own text for a terminal: its colors stay, anything else that a terminal would act on is marked."""
    return between_colors(text, printable)


def say(text: str = "") -> None:
    """Write one line for people to stderr."""
    write(sys.stderr, printable(text) + "\n")


def put(text: str) -> None:
    """Write the text of a result to stdout, with no other control sequences than those of colors."""
    write(sys.stdout, only_colored(text))


def content_writer() -> Callable[[bytes], None]:
    """A function that writes the next piece of a file's content to stdout.

    A pipe or a file gets the exact bytes; a terminal gets text with its hidden characters marked.
    """
    if not sys.stdout.isatty():
        sys.stdout.flush()
        return lambda piece: _write_bytes(sys.stdout, piece)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return lambda piece: write(sys.stdout, visible(decoder.decode(piece)).translate(_WITHOUT_JOINERS))


def page(text: str) -> None:
    """Write the text of a result to stdout; on a terminal that is too small for it through $PAGER, or less."""
    width = console(sys.stdout).width
    rows = sum(rows_of(line, width) for line in text.split("\n"))
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb" or rows < console(sys.stdout).height:
        put(text)
        return
    from pydoc import pager

    # As git does: colors pass, and what was read stays on the screen.
    os.environ.setdefault("LESS", "FRX")
    pager(text)


def rows_of(line: str, width: int) -> int:
    """How many rows a line takes on a terminal of this width."""
    from rich.cells import cell_len

    return max(1, math.ceil(cell_len(uncolored(line)) / max(1, width)))


def line_width(stream: TextIO) -> int | None:
    """The columns of the terminal that the stream is; None if it is something else, where lines are not cut."""
    return console(stream).width if stream.isatty() else None


def console(stream: TextIO | None = None) -> Console:
    """A Rich console on stderr (or `stream`) that follows the same color rules."""
    from rich.console import Console

    target = stream or sys.stderr
    colours = coloured(target)
    return Console(
        file=target,
        force_terminal=colours or None,
        color_system="auto" if colours and target.isatty() else "standard" if colours else None,
        no_color=not colours,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if target.isatty() else _UNBOUNDED,
    )


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    empty: str = "nothing here yet",
    width: int | None = None,
) -> None:
    """Print a list as aligned columns on stdout, one line per row; if it is empty, print `empty` on stderr.

    None is shown as a dash. If `width` (default: of the terminal) is too small, prose is cut, then columns are left out
    from the right.
    """
    if not rows:
        say(empty)
        return
    from rich.cells import cell_len, set_cell_size

    cells = [["-" if cell is None else " ".join(printable(str(cell)).split()) for cell in row] for row in rows]
    by_column = {name: [row[n] for row in cells] for n, name in enumerate(columns)}
    widths = {name: max(map(cell_len, [name, *texts])) for name, texts in by_column.items()}
    prose = [name for name, texts in by_column.items() if any(" " in text for text in texts)]
    shown = fitted(columns, widths, prose, width or console(sys.stdout).width)
    heading = _line([set_cell_size(name, width) for name, width in shown.items()])
    put(paint(heading, "bold", sys.stdout) + "\n")
    for number in range(len(cells)):
        texts = {name: by_column[name][number] for name in shown}
        put(_line([_cut(texts[name], width) for name, width in shown.items()]) + "\n")


def _line(cells: Sequence[str]) -> str:
    return (" " * _GAP).join(cells).rstrip()


def _cut(text: str, width: int) -> str:
    """`text` in exactly this many columns; an ellipsis shows that it was longer."""
    from rich.cells import cell_len, set_cell_size

    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def print_json(document: object) -> None:
    """Print exactly one JSON document on stdout: indented on a terminal, on one line in a pipe."""
    put(_json(document, indent=2 if sys.stdout.isatty() else None) + "\n")


def print_json_line(document: object) -> None:
    """Print one of several documents, each on a separate line."""
    put(_json(document) + "\n")


def _json(document: object, indent: int | None = None) -> str:
    """The document in ASCII; DEL is the one control character that `dumps` leaves as it is."""
    return json.dumps(plain(document), indent=indent, allow_nan=False).replace("\x7f", "\\u007f")


def plain(value: object) -> Any:
    """Convert `value` to JSON types: times as ISO 8601 UTC, models as objects, non-finite numbers as null."""
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    return _plain_scalar(value)


def _plain_scalar(value: object) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON here")


def iso(moment: datetime) -> str:
    """`moment` as ISO 8601 in UTC, ending in Z. Raises TypeError for a naive time."""
    if moment.tzinfo is None:
        raise TypeError(f"{moment!r} has no time zone")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def write(stream: TextIO, text: str) -> None:
    """Write `text` at once; a character that the stream cannot show is escaped instead of causing an error."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _write_bytes(stream: TextIO, content: bytes) -> None:
    stream.buffer.write(content)
    stream.buffer.flush()


def fitted(columns: Sequence[str], widths: Mapping[str, int], prose: Sequence[str], width: int) -> dict[str, int]:
    """The columns to show with their widths, at most `width` in total with the gaps, if that is possible.

    `widths` has the width of the longest cell of each column, the heading included; `prose` names the columns that may
    be cut. Wide prose is cut first; then columns are left out from the right.
    """
    shown = {name: widths[name] for name in columns}
    while (excess := _total(shown) - width) > 0:
        widest = max((name for name in prose if shown.get(name, 0) > _SHORTEST), key=shown.__getitem__, default=None)
        if widest is not None:
            others = [shown[name] for name in prose if name in shown and name != widest]
            # Down to the next shorter one first, so that all prose shrinks alike.
            floor = max([_SHORTEST, *(other for other in others if other < shown[widest])])
            shown[widest] = max(shown[widest] - max(1, excess), floor if floor < shown[widest] else _SHORTEST)
        elif len(shown) > _NEVER_LEFT_OUT:
            shown.popitem()
            # What was cut for the column that is gone may grow again.
            shown = {name: widths[name] for name in shown}
        else:
            break
    return shown


def _total(shown: Mapping[str, int]) -> int:
    return sum(shown.values()) + _GAP * (len(shown) - 1)
