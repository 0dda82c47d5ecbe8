"""Following an order in a terminal: what the model says, its calls as they end, then the outcome."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from control_plane.cli.answers import for_people
from control_plane.cli.rendering import outcome_text
from control_plane.cli.step_lines import StepLines
from shared.durations import clock_label
from shared.terminal.output import print_json_line, printable, say, write
from shared.terminal.run_screen import RunScreen, Spoken

Doc = dict[str, Any]
_SPOKEN: dict[str, Spoken] = {"assistant": "text", "reasoning": "thinking"}
"""What the model says, by the kind of step."""
_CUTS = {"retry", "error", "user", "approval", "run_started", "resumed"}
"""Steps after which the model begins another message."""
_RUNNING = {"running", "canceling"}


def follow_as_json(fleet: Any, order_id: str) -> Doc:
    """Print one JSON event per line, and the order's document last; returns that document."""
    order: Doc = {}
    for event, data in without_connection(fleet.follow(order_id)):
        if event == "end":
            order = data
        elif event != "heartbeat":
            print_json_line({"event": event, **data})
    print_json_line(order)
    return order


def without_connection(events: Iterable[tuple[str, Doc]]) -> Iterator[tuple[str, Doc]]:
    """The other events; each loss of the connection, and its return, is one line on stderr."""
    lost = False
    for event, data in events:
        if event != "connection":
            yield event, data
        elif lost != (data["state"] == "lost"):
            lost = not lost
            say(_connection(data))


def _connection(data: Doc) -> str:
    return "reconnected" if data["state"] == "back" else f"connection lost: {data['why']}; retrying"


def follow_as_text(fleet: Any, order_id: str, *, outputs: bool = False, stream: TextIO | None = None) -> Doc:
    """Print for people on `stream` (default: stdout); `outputs`: with the output of every call.

    Returns the order's final document.
    """
    clock, shown = StatusLine(), stream or sys.stdout
    with RunScreen(shown, clock.text) as screen:
        follower = OrderEvents(screen, clock, StepLines(outputs=outputs, order_id=order_id))
        for event, received in fleet.follow(order_id):
            # Pieces of text go to the screen as they are: it puts them together first.
            data = received if event == "delta" else for_people(received)
            if event == "end":
                follower.end()
                break
            follower.show(event, data)
        else:
            raise AssertionError("a stream ends with its `end` event")
    write(shown, outcome_text(data))
    return dict(received)


class StatusLine:
    """How long the order has been running, what it used so far, and what it is doing."""

    def __init__(self) -> None:
        self._order: Doc = {}
        self._heard = 0.0

    def hear(self, order: Doc) -> None:
        self._order, self._heard = order, time.monotonic()

    def text(self) -> str:
        order = self._order
        if not order:
            return ""
        stats = order["stats"]
        # The durations are the server's: the clock of this machine may differ from its clock.
        since = time.monotonic() - self._heard if order["started_at"] and order["status"] in _RUNNING else 0
        tokens = stats["input_tokens"] + stats["output_tokens"]
        return " · ".join(
            (
                order["status"].replace("_", " "),
                clock_label(stats["duration_ms"] / 1000 + since),
                f"{stats['tool_calls']} calls",
                f"{tokens:,} tokens",
                "price unknown" if stats["cost_usd"] is None else f"${stats['cost_usd']:.4f}",
                *([order["doing"]] if order["doing"] else []),
            )
        )


class OrderEvents:
    """Passes the events of a stream to the screen."""

    def __init__(self, screen: RunScreen, clock: StatusLine, steps: StepLines) -> None:
        self._screen = screen
        self._clock = clock
        self._steps = steps
        self._state = ""

    def show(self, event: str, data: Doc) -> None:
        if event == "delta":
            self._delta(data)
        elif event == "step":
            self._step(data)
        elif event == "order":
            self._order(data)
        elif event == "connection":
            self._screen.note(_connection(data))

    def end(self) -> None:
        self._screen.running("")
        self._screen.lines(self._steps.left_open())

    def _delta(self, data: Doc) -> None:
        # Streamed arguments of a call are incomplete JSON; the whole call follows as a step.
        if data["kind"] == "output":
            self._screen.output(data["text"])
        elif data["kind"] in {"text", "thinking"}:
            self._screen.piece(data["kind"], data["text"], data.get("offset"))

    def _step(self, step: Doc) -> None:
        spoken = _SPOKEN.get(step["kind"])
        if spoken is not None and not step.get("undone"):
            self._screen.message(spoken, step.get("text", ""))
            return
        if step["kind"] in _CUTS:
            self._screen.cut()
        self._screen.lines(self._steps.lines(step))
        self._screen.running(self._steps.running())

    def _order(self, order: Doc) -> None:
        self._clock.hear(order)
        self._steps.order_id = order["id"]
        if order["ended_at"]:
            # The outcome follows, with the same reason.
            return
        reason = order["doing"] if order.get("stalled") else order["reason"]
        state = f"{order['status']}: {reason}" if reason else order["status"]
        if state != self._state:
            self._state = state
            self._screen.lines([(f"● {printable(state)}", "bold")])
