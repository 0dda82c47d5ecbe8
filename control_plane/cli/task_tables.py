"""Tasks as a table."""

from __future__ import annotations

from typing import Any

from control_plane.cli.orders import cost
from shared.durations import duration_label
from shared.terminal.command_line import print_table

Doc = dict[str, Any]


def task_table(tasks: list[Doc]) -> str:
    """Print the tasks as a table."""
    columns = ("TASK", "STATUS", "ASSIGNEE", "PROJECT", "RUNS", "COST", "TIME", "TITLE", "REASON")
    rows = [
        (
            task["id"],
            task["status"],
            task["assignee"],
            task["project"],
            task["totals"]["runs"],
            cost(task["totals"]["cost_usd"]),
            duration_label(task["totals"]["duration_ms"]),
            _short(task["title"], 40),
            _short(task["reason"], 60),
        )
        for task in tasks
    ]
    print_table(columns, rows, empty="no tasks; fleet task create 'TITLE' creates one")
    return ""


def _short(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
