"""Following an order in a terminal: text as it streams, tool calls and results as they happen, then the outcome."""

from __future__ import annotations

import sys
from typing import Any

from control_plane.cli.rendering import outcome_text
from control_plane.cli.step_lines import step_lines
from shared.terminal.output import paint, print_json_line, printable, put, say

Doc = dict[str, Any]
STREAMED_AS = {"assistant": "text", "reasoning": "thinking", "tool_result": "output"}
"""The kind of delta that streams each kind of step."""


def follow_as_json(fleet: Any, order_id: str) -> Doc:
    """Print one JSON event per line, and the order's document last; returns that document."""
    order: Doc = {}
    for event, data in fleet.follow(order_id):
        if event == "end":
            order = data
        elif event not in {"heartbeat", "connection"}:
            print_json_line({"event": event, **data})
    print_json_line(order)
    return order


def follow_as_text(fleet: Any, order_id: str) -> Doc:
    """Print for people. Returns the order's final document."""
    screen = _Screen(order_id)
    for event, data in fleet.follow(order_id):
        if event == "end":
            screen.end_stream()
            put(outcome_text(data))
            return dict(data)
        screen.show(event, data)
    raise AssertionError("a stream ends with its `end` event")


class _Screen:
    """Tracks the current line, so that streamed text and whole steps do not run into each other."""

    def __init__(self, order_id: str) -> None:
        self._order_id = order_id
        self._streaming: str | None = None
        self._streamed: set[str] = set()
        self._state = ""

    def show(self, event: str, data: Doc) -> None:
        if event == "delta":
            self._delta(data)
        elif event == "step":
            self._step(data)
        elif event == "order":
            self._order(data)
        elif event == "connection":
            self.end_stream()
            say("reconnected" if data["state"] == "back" else f"connection lost: {data['why']}; retrying")

    def end_stream(self) -> None:
        """Finish a line of streamed text."""
        if self._streaming is not None:
            put("\n")
            self._streaming = None

    def _delta(self, data: Doc) -> None:
        kind = data["kind"]
        if kind == "tool_call":
            # Streamed arguments are incomplete JSON; the whole call follows as a step.
            return
        if kind != self._streaming:
            self.end_stream()
            self._streaming = kind
        self._streamed.add(kind)
        text = printable(data["text"])
        put(paint(text, "dim", sys.stdout) if kind in {"thinking", "output"} else text)

    def _step(self, step: Doc) -> None:
        # Streamed text is already on the screen; its step only ends the line.
        shown = STREAMED_AS.get(step["kind"], "")
        self.end_stream()
        already = shown in self._streamed
        self._streamed.discard(shown)
        for line in step_lines(step, streamed=already, order_id=self._order_id):
            put(f"{line}\n")

    def _order(self, order: Doc) -> None:
        reason = order["doing"] if order.get("stalled") else order["reason"]
        state = f"{order['status']}: {reason}" if reason else order["status"]
        if state != self._state:
            self._state = state
            self.end_stream()
            put(paint(f"● {printable(state)}", "bold", sys.stdout) + "\n")
