"""Shows on stderr what a run of `drone run` does, while it does it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drone.agent.protocols import DeltaKind
from drone.runs import journal
from shared.events import (
    AssistantStep,
    Body,
    ErrorStep,
    Phase,
    RetryStep,
    RunEnded,
    ToolCallStep,
    ToolResultStep,
)
from shared.terminal import Style, paint, printable

MAX_LINES = 12
"""Of a tool's result; the model was shown more, and `--json` has it all."""
MAX_WIDTH = 200


class TerminalLink:
    """Implements `drone.runs.link.Link` for a run that nobody but the person at the terminal follows.

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

    def doing(self, text: str) -> None:
        """Nothing: there is no heartbeat to carry it, and the events say the same."""

    def _show(self, body: Body) -> None:
        show = _SHOWN.get(type(body))
        if show is None:
            return
        if self._in_flight:
            _err("\n")
            self._in_flight = False
        for text, style in show(body):
            _err((paint(printable(text), style, sys.stderr) if style else printable(text)) + "\n")


def _err(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


Lines = list[tuple[str, Style | None]]


def _phase(body: Phase) -> Lines:
    return [(f"· {body.name}{': ' if body.detail else ''}{body.detail}", "dim")]


def _assistant(_body: AssistantStep) -> Lines:
    # Its text was streamed already; this only ends the line that was in flight.
    return []


def _call(body: ToolCallStep) -> Lines:
    arguments = body.arguments if isinstance(body.arguments, str) else json.dumps(body.arguments, ensure_ascii=False)
    return [(f"→ {body.tool} {_cut(arguments)}", "cyan")]


def _result(body: ToolResultStep) -> Lines:
    error = "error, " if body.is_error else ""
    code = "" if body.return_code is None else f"exit {body.return_code}, "
    lines = body.output.rstrip("\n").splitlines()
    shown: Lines = [(f"  {_cut(line)}", "dim") for line in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        shown.append((f"  … {len(lines) - MAX_LINES} more lines", "dim"))
    return [(f"← {error}{code}{body.duration_ms} ms", "red" if body.is_error else "green"), *shown]


def _retry(body: RetryStep) -> Lines:
    return [(f"! {body.error_class}: {_cut(body.error)}; again in {body.delay_s:.1f} s", "yellow")]


def _error(body: ErrorStep) -> Lines:
    return [(f"! {body.what}", "red"), *([(f"  {_cut(body.detail)}", None)] if body.detail else [])]


def _ended(body: RunEnded) -> Lines:
    cost = "cost unknown" if body.stats.cost_usd is None else f"{body.stats.cost_usd:.4f} USD"
    tokens = f"{body.stats.input_tokens} + {body.stats.output_tokens} tokens"
    style: Style = "green" if body.status == "success" else "red"
    return [(f"{body.status}: {body.reason}", style), (f"  {body.stats.tool_calls} calls, {tokens}, {cost}", "dim")]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_WIDTH else f"{text[:MAX_WIDTH]}…"


_SHOWN: dict[type[Any], Callable[[Any], Lines]] = {
    Phase: _phase,
    AssistantStep: _assistant,
    ToolCallStep: _call,
    ToolResultStep: _result,
    RetryStep: _retry,
    ErrorStep: _error,
    RunEnded: _ended,
}
