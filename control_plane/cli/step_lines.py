"""The steps of an order's document as terminal lines: `shared.terminal.step_lines`, and what only the fleet knows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from shared.events import TodoItem
from shared.terminal import step_lines as rendered
from shared.terminal.output import line_width, paint, printable

Doc = dict[str, Any]


class StepLines:
    """Renders an order's steps in their order, each call as one line; `outputs`: with the output of every call.

    With `order_id`, a call that waits for a user is followed by the commands that decide it. On a terminal, a call
    takes no more than one of its lines.
    """

    order_id: str
    """The order by which these commands name it: its id, once that is known, since `@last` may become another one."""

    def __init__(self, *, outputs: bool = False, order_id: str = "") -> None:
        self._folded = rendered.FoldedCalls(outputs=outputs, width=line_width(sys.stdout))
        self.order_id = printable(order_id)

    def lines(self, step: Doc) -> rendered.Lines:
        """The lines that show a step; empty if people need not see it, or if it is a call without a result yet."""
        lines = _resumed(step) if step["kind"] == "resumed" else self._lines(step)
        if step.get("undone") and lines:
            (first, _), *rest = lines
            lines = [(f"(undone) {first}", "dim"), *((text, "dim") for text, _ in rest)]
        if step["kind"] == "approval" and self.order_id:
            lines.append((f"  next  {answering(self.order_id, step.get('about'))}", None))
        return lines

    def running(self) -> str:
        """The line of the call that runs now; empty if there is none."""
        return self._folded.running()

    def left_open(self, *, ended: bool = True) -> rendered.Lines:
        """The calls that have no result, after the last step; `ended` tells whether one may still come."""
        return self._folded.left_open() if ended else self._folded.still_open()

    def _lines(self, step: Doc) -> rendered.Lines:
        body = rendered.parsed_body(step)
        return self._folded.lines(body) if body is not None else []


def answering(order_id: str, kind: str | None) -> str:
    """The commands that answer a wait of this kind."""
    if kind == "question":
        return f"fleet answer {order_id}"
    if kind == "plan":
        return f"fleet plan approve {order_id}    or    fleet plan edit {order_id}"
    return f"fleet approve {order_id}    or    fleet deny {order_id}"


def transcript_lines(steps: Iterable[Doc], *, outputs: bool = False, ended: bool = True) -> list[str]:
    """All steps of an order as lines for stdout; `ended` tells whether no more of them will come."""
    each = StepLines(outputs=outputs)
    return _painted([*(line for step in steps for line in each.lines(step)), *each.left_open(ended=ended)])


def step_lines(step: Doc) -> list[str]:
    """One step alone as lines for stdout: a call without its result, and a result without its call."""
    body = rendered.parsed_body(step)
    return _painted(rendered.event_lines(body)) if body is not None else []


def todo_lines(items: Iterable[Doc]) -> list[str]:
    """The model's to-do list."""
    return rendered.todo_lines(TodoItem.model_validate(item) for item in items)


def _painted(lines: rendered.Lines) -> list[str]:
    return [paint(text, style, sys.stdout) if style else text for text, style in lines]


def _resumed(step: Doc) -> rendered.Lines:
    """Rendered here: the event names a run, but the document names the step and attempt that people know."""
    where = f"step {step['from_step'] or '?'} of attempt {step['from_attempt'] or '?'}"
    drone = f" on drone {step['from_drone']}" if step["from_drone"] else ""
    return [(rendered.one_line(f"↻ resumed after {where}{drone}{': ' + step['why'] if step['why'] else ''}"), "yellow")]
