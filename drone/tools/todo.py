"""todo: the model's list of remaining work, shown to people next to the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drone.agent.values import ToolResult
from drone.tools.arguments import TodoArguments
from drone.tools.wrong_use import WrongUse
from shared.events import TodoItem, TodoStep

_WORDS = {"done": "done", "in_progress": "in progress", "pending": "pending"}


@dataclass(frozen=True)
class Todo:
    """Records the complete list each time."""

    record: Callable[[TodoStep], object]

    def __call__(self, call: TodoArguments) -> ToolResult:
        states = [item.status for item in call.items]
        if states.count("in_progress") > 1:
            raise WrongUse(
                f"{states.count('in_progress')} items are in_progress; keep only the one that you are working on, and "
                "set the others to pending or done"
            )
        self.record(TodoStep(items=tuple(TodoItem(text=item.text, status=item.status) for item in call.items)))
        counts = [f"{states.count(state)} {word}" for state, word in _WORDS.items() if state in states]
        return ToolResult(f"noted: {', '.join(counts)}" if counts else "noted: the list is empty")
