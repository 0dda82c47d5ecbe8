"""Following a batch in a terminal: its progress, until all rows have ended, across restarts of the server."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import cost, exit_code, for_people
from control_plane.cli.completion import listed
from control_plane.cli.polling import EVERY_S, PatientReader
from shared.clock import Clock, SystemClock
from shared.durations import roughly
from shared.terminal.command_line import print_json_line, put, say
from shared.terminal.output import console, write

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient

Doc = dict[str, Any]
QUIET_S = 10.0
"""Where lines cannot be overwritten, a new one is written no more often than this."""
_SHOWN = ("status", "ended", "total", "resolved", "open", "waiting", "failed", "cost_usd", "remaining_s")
BatchId = Annotated[
    str, typer.Argument(metavar="BATCH", help="The batch's name or id.", autocompletion=listed("batches:name"))
]


def follow_batch(
    fleet: FleetClient, batch: Doc, text: Callable[[Doc], str], *, as_json: bool, clock: Clock | None = None
) -> int:
    """Show the progress until all rows have ended; returns 0 if all are done or unchanged, else 1.

    A server that is away is waited for. Ctrl-C ends this, not the batch.
    """
    progress = _Progress(as_json=as_json)
    try:
        batch = _until_ended(fleet, batch, progress, clock or SystemClock())
    except KeyboardInterrupt:
        progress.end_line()
        say(f"batch {batch['name']} continues")
        say(f"  next  fleet batch show {batch['name']}    or: fleet batch cancel {batch['name']}")
        raise
    progress.end_line()
    if as_json:
        print_json_line(batch)
    else:
        put(f"{text(for_people(batch))}\n")
    return exit_code(batch)


def _until_ended(fleet: FleetClient, batch: Doc, progress: _Progress, clock: Clock) -> Doc:
    from control_plane.contract.declarations.batches import SHOW

    read = PatientReader(lambda: fleet.call(SHOW, batch_id=batch["id"]), progress.note, clock, reached=True)
    while True:
        progress.show(batch)
        if batch["status"] in {"finished", "canceled"}:
            return batch
        clock.sleep(EVERY_S)
        batch = read()


def progress_line(batch: Doc) -> str:
    """`120 of 500 ended, 96 resolved, 4 failed, 4 running, $3.2000, about 12 min left`."""
    parts = [f"{batch['ended']} of {batch['total']} ended", f"{batch['resolved']} resolved"]
    counted = (("failed", "failed"), ("canceled", "canceled"), ("refused", "refused"), ("open", "under way"))
    parts += [f"{batch[name]} {words}" for name, words in counted if batch[name]]
    parts.append(cost(batch["cost_usd"]))
    if batch["remaining_s"]:
        parts.append(f"about {roughly(batch['remaining_s'])} left")
    return ", ".join(parts)


class _Progress:
    """One line that is overwritten on a terminal; on a dumb one and elsewhere, lines."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._last: Doc = {}
        self._at = float("-inf")
        self._overwrites = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not as_json
        self._line_open = False

    def show(self, batch: Doc) -> None:
        shown = {name: batch[name] for name in _SHOWN}
        if shown == self._last:
            return
        if self._as_json:
            self._last = shown
            print_json_line({"event": "progress", **shown})
        elif self._overwrites:
            self._last, self._line_open = shown, True
            # A line that wraps could not be overwritten.
            line = progress_line(batch)[: console(sys.stderr).width - 1]
            write(sys.stderr, f"\r\x1b[2K{line}")
        elif time.monotonic() - self._at >= QUIET_S:
            self._last, self._at = shown, time.monotonic()
            say(progress_line(batch))

    def note(self, text: str) -> None:
        self.end_line()
        say(text)

    def end_line(self) -> None:
        if self._line_open:
            self._line_open = False
            write(sys.stderr, "\n")
