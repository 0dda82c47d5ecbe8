"""Shows the progress of `drone run` live on stderr."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from drone.agent.values import DeltaKind, WaitsFor
from drone.reporting import journal
from shared.events import AssistantStep, Body, ReasoningStep, RunEnded
from shared.terminal.output import Style, paint, printable
from shared.terminal.step_lines import Lines, event_lines


class TerminalLink:
    """Implements `drone.runs.pipe.Link` for a run that only the person at the terminal follows.

    Events are read back from the journal, so that the output matches the record: redacted, and in its order.
    """

    def __init__(self, journal_file: Path) -> None:
        self._journal = journal_file
        self._offset = 0
        self._lock = threading.Lock()
        self._in_flight = False
        """Whether text without a final newline is on the screen."""

    def recorded(self) -> None:
        """Show the events that were added to the journal since the last call."""
        with self._lock:
            while lines := journal.read(self._journal, self._offset):
                for line in lines:
                    self._show(line.event.body)
                self._offset = lines[-1].end

    def delta(self, kind: DeltaKind, text: str, after_seq: int = 0) -> None:  # noqa: ARG002
        """Show text and thinking as they stream; calls and results are shown when complete."""
        if kind not in {"text", "thinking"}:
            return
        with self._lock:
            self._in_flight = True
            shown = printable(text)
            _err(paint(shown, "dim", sys.stderr) if kind == "thinking" else shown)

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        """Do nothing: there is no heartbeat to carry it, and the events show the same."""

    def progress(self) -> None:
        """Do nothing, as above."""

    def _show(self, body: Body) -> None:
        streamed = isinstance(body, AssistantStep | ReasoningStep)
        lines = run_end_lines(body) if isinstance(body, RunEnded) else event_lines(body, streamed=streamed)
        if self._in_flight and (lines or streamed):
            _err("\n")
            self._in_flight = False
        for text, style in lines:
            _err((paint(text, style, sys.stderr) if style else text) + "\n")


def run_end_lines(body: RunEnded) -> Lines:
    """Return how the run ended, and what it used. An unknown price is reported as unknown."""
    cost = "price unknown" if body.stats.cost_usd is None else f"{body.stats.cost_usd:.4f} USD"
    tokens = f"{body.stats.input_tokens} + {body.stats.output_tokens} tokens"
    style: Style = "green" if body.status == "success" else "red"
    head = printable(f"{body.status}: {body.reason}")
    return [(head, style), (f"  {body.stats.tool_calls} calls, {tokens}, {cost}", "dim")]


def _err(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
