"""The steps of an order's document as terminal lines: `shared.terminal.step_lines`, and what only the fleet knows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from shared.events import TodoItem
from shared.terminal import step_lines as rendered
from shared.terminal.output import paint

Doc = dict[str, Any]


def step_lines(step: Doc, *, streamed: bool = False, order_id: str = "") -> list[str]:
    """The lines that show a step; empty if people need not see it. `streamed`: its text is already on the screen.

    With `order_id`, a call that waits for approval is followed by the commands that decide it.
    """
    lines = _resumed(step) if step["kind"] == "resumed" else _lines(step, streamed)
    if step.get("undone") and lines:
        (first, _), *rest = lines
        lines = [(f"(undone) {first}", "dim"), *((text, "dim") for text, _ in rest)]
    if step["kind"] == "approval" and order_id:
        lines.append((f"  next  fleet approve {order_id}    or    fleet deny {order_id}", None))
    return [paint(text, style, sys.stdout) if style else text for text, style in lines]


def todo_lines(items: Iterable[Doc]) -> list[str]:
    """The model's to-do list."""
    return rendered.todo_lines(TodoItem.model_validate(item) for item in items)


def _lines(step: Doc, streamed: bool) -> rendered.Lines:
    body = rendered.parsed_body(step)
    return rendered.event_lines(body, streamed=streamed) if body is not None else []


def _resumed(step: Doc) -> rendered.Lines:
    """Rendered here: the event names a run, but the document names the step and attempt that people know."""
    where = f"step {step['from_step'] or '?'} of attempt {step['from_attempt'] or '?'}"
    drone = f" on drone {step['from_drone']}" if step["from_drone"] else ""
    return [(rendered.one_line(f"↻ resumed after {where}{drone}{': ' + step['why'] if step['why'] else ''}"), "yellow")]
