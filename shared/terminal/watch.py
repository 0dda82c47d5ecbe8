"""`--watch`: a list that is drawn again and again in place, until Ctrl-C."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from itertools import accumulate
from typing import Annotated

import typer

from shared.errors import FleetFault, Invalid, TooOften
from shared.terminal.output import paint, rows_of, say, write

EVERY_SECONDS = 2.0
_HOME_AND_CLEAR = "\x1b[H\x1b[J"


WatchFlag = Annotated[bool, typer.Option("--watch", "-w", help="Show the list again every two seconds, until Ctrl-C.")]


def watched(draw: Callable[[], None], *, watch: bool, as_json: bool) -> None:
    """Call `draw`, once or, with `watch`, every two seconds; returns at Ctrl-C.

    While the server cannot be reached, the reason is shown instead. Raises Invalid without a terminal or with
    `as_json`, and the refusals of `draw`.
    """
    if not watch:
        draw()
        return
    if as_json or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        what = "--watch and --json cannot be used together" if as_json else "--watch requires a terminal"
        raise Invalid(what, code="E-WATCH", next="leave out --watch")
    try:
        while True:
            shown = _drawn(draw)
            size = shutil.get_terminal_size()
            text = f"every {EVERY_SECONDS:.0f} s, Ctrl-C ends  {time.strftime('%X')}"
            head = paint(text[: size.columns - 1], "dim", sys.stdout)
            write(sys.stdout, _HOME_AND_CLEAR + "\n".join([head, *cut_to_screen(shown, size)]) + "\n")
            time.sleep(EVERY_SECONDS)
    except KeyboardInterrupt:
        return


class _Screen(io.StringIO):
    """Text for the terminal that is kept until it is complete."""

    def isatty(self) -> bool:
        return True


def _drawn(draw: Callable[[], None]) -> str:
    with redirect_stdout(_Screen()) as screen, redirect_stderr(screen):
        try:
            draw()
        except (FleetFault, TooOften) as trouble:
            say(f"{trouble.what}; trying again")
    return screen.getvalue()


def cut_to_screen(text: str, size: os.terminal_size) -> list[str]:
    """The lines for which a screen of this size has rows below the head; the last one says how many are left out."""
    lines = text.removesuffix("\n").split("\n")
    ends = list(accumulate(rows_of(line, size.columns) for line in lines))
    free = size.lines - 2
    if ends[-1] <= free:
        return lines
    kept = sum(end < free for end in ends)
    left_out = f"… {len(lines) - kept} more lines; a larger window or --limit shows them"
    return [*lines[:kept], left_out[: size.columns - 1]]
