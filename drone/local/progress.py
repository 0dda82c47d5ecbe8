"""Shows on stderr what a run of `drone run` does, while it does it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from drone.agent.values import DeltaKind, WaitsFor
from drone.local.event_lines import lines_of
from drone.reporting import journal
from shared.events import Body
from shared.terminal.output import paint, printable


class TerminalLink:
    """Implements `drone.runs.pipe.Link` for a run that nobody but the person at the terminal follows.

    Events are read back from the journal, so that what is shown is what was kept: redacted, and in its order.
    """

    def __init__(self, journal_file: Path) -> None:
        self._journal = journal_file
        self._offset = 0
        self._lock = threading.Lock()
        self._in_flight = False
        """Text without its end of line is on the screen."""

    def recorded(self) -> None:
        """Show the events that came to the journal since the last look."""
        with self._lock:
            while lines := journal.read(self._journal, self._offset):
                for line in lines:
                    self._show(line.event.body)
                self._offset = lines[-1].end

    def delta(self, kind: DeltaKind, text: str, after_seq: int = 0) -> None:  # noqa: ARG002
        """Show text and thinking as they stream; calls and results are shown whole."""
        if kind not in {"text", "thinking"}:
            return
        with self._lock:
            self._in_flight = True
            shown = printable(text)
            _err(paint(shown, "dim", sys.stderr) if kind == "thinking" else shown)

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        """Nothing: there is no heartbeat to carry it, and the events say the same."""

    def progress(self) -> None:
        """Nothing, as above."""

    def _show(self, body: Body) -> None:
        lines = lines_of(body)
        if lines is None:
            return
        if self._in_flight:
            _err("\n")
            self._in_flight = False
        for text, style in lines:
            _err((paint(printable(text), style, sys.stderr) if style else printable(text)) + "\n")


def _err(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
