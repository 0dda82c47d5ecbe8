"""What a run without a fleet has in its place: one person with a keyboard and a screen, and blobs kept in memory."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Self

from drone.agent.values import DeltaKind, Ruling, UserMessage, WaitsFor
from drone.reporting import journal
from drone.runs.stop_requests import Wish
from shared.blobs import digest
from shared.durations import clock_label
from shared.errors import NotFound, Preempted
from shared.events import ApprovalStep, AssistantStep, Body, ErrorStep, ReasoningStep, RetryStep, RunEnded, UserStep
from shared.outcome import ExitStatus, Outcome
from shared.terminal.output import Style, line_width, printable
from shared.terminal.run_screen import RunScreen
from shared.terminal.step_lines import FoldedCalls, Lines


class LocalControls:
    """Implements `drone.runs.context.RunWishes` for one person with a keyboard: Ctrl-C ends the run but keeps its
    work.
    """

    def __init__(self) -> None:
        self._wish: Wish | None = None

    def interrupt(self) -> None:
        """Ask the run to end. Takes no lock, because it is called from a signal handler."""
        self._wish = Wish("cancel", "interrupted with Ctrl-C")

    @property
    def wish(self) -> Wish | None:
        return self._wish

    def check(self) -> None:
        """Return if the run may continue. Raises Preempted."""
        wish = self._wish
        if wish is not None:
            raise Preempted(outcome=Outcome(ExitStatus.CANCELED, wish.reason))

    check_end = check

    def steering(self) -> list[UserMessage]:
        return []

    def follow_ups(self) -> list[UserMessage]:
        return []

    def left_over(self) -> list[UserMessage]:
        return []

    def pending(self) -> bool:
        return False

    def review_comments(self) -> tuple[str, ...]:
        return ()

    def ruling(self, _call_id: str) -> Ruling | None:
        return None

    def compaction_asked(self) -> str | None:
        return None


class TerminalLink:
    """Implements `drone.runs.pipe.Link` for a run that only the person at the terminal follows.

    Events are read back from the journal, so that the output matches the record: redacted, and in its order.
    """

    def __init__(self, journal_file: Path) -> None:
        self._journal = journal_file
        self._offset = 0
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._doing = ""
        self._calls = FoldedCalls(width=line_width(sys.stderr))
        self._screen = RunScreen(sys.stderr, self._status)

    def __enter__(self) -> Self:
        self._screen.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._screen.__exit__(*error)

    def recorded(self) -> None:
        """Show the events that were added to the journal since the last call."""
        with self._lock:
            while lines := journal.read(self._journal, self._offset):
                for line in lines:
                    self._show(line.event.body)
                self._offset = lines[-1].end

    def delta(self, kind: DeltaKind, text: str, after_seq: int = 0, offset: int | None = None) -> None:  # noqa: ARG002
        """Show text, thinking and the output of a command as they stream; calls are shown when complete."""
        if kind == "output":
            self._screen.output(text)
        elif kind != "tool_call":
            self._screen.piece(kind, text, offset)

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:  # noqa: ARG002
        """Show it in the status line."""
        self._doing = text

    def progress(self) -> None:
        """Do nothing: there is no heartbeat to carry it."""

    def _status(self) -> str:
        clock = clock_label(time.monotonic() - self._began)
        return f"{clock} · {self._doing}" if self._doing else clock

    def _show(self, body: Body) -> None:
        match body:
            case AssistantStep():
                self._screen.message("text", body.text)
            case ReasoningStep():
                self._screen.message("thinking", body.text)
            case RetryStep() | ErrorStep() | UserStep() | ApprovalStep():
                self._screen.cut()
                self._screen.lines(self._calls.lines(body))
            case RunEnded():
                self._screen.lines([*self._calls.left_open(), *run_end_lines(body)])
            case _:
                self._screen.lines(self._calls.lines(body))
        self._screen.running(self._calls.running())


def run_end_lines(body: RunEnded) -> Lines:
    """Return how the run ended, and what it used. An unknown price is reported as unknown."""
    cost = "price unknown" if body.stats.cost_usd is None else f"{body.stats.cost_usd:.4f} USD"
    tokens = f"{body.stats.input_tokens} + {body.stats.output_tokens} tokens"
    style: Style = "green" if body.status == "success" else "red"
    head = printable(f"{body.status}: {body.reason}")
    return [(head, style), (f"  {body.stats.tool_calls} calls, {tokens}, {cost}", "dim")]


class MemoryStore:
    """Implements `drone.runs.blobs.Store` for a run whose blobs are not needed after it."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def put(self, content: bytes) -> str:
        name = digest(content)
        self._blobs[name] = content
        return name

    def get(self, run_id: str, sha256: str) -> bytes:
        try:
            return self._blobs[sha256]
        except KeyError:
            raise NotFound(f"run {run_id} has no blob {sha256}", code="E-BLOB-404") from None
