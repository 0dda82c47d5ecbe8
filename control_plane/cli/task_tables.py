"""Tasks as a table."""

from __future__ import annotations

from typing import Any

from control_plane.cli.orders import cost
from shared.durations import duration_label
from shared.terminal.command_line import print_table

Doc = dict[str, Any]


def task_table(tasks: list[Doc]) -> str:
    """Print the tasks as a table."""
    columns = ("TASK", "STATUS", "TITLE", "ASSIGNEE", "TIME", "RUNS", "COST", "PROJECT", "REASON")
    rows = [
        (
            task["id"],
            task["status"],
            task["title"],
            task["assignee"],
            duration_label(task["totals"]["duration_ms"]),
            task["totals"]["runs"],
            cost(task["totals"]["cost_usd"]),
            task["project"],
            task["reason"],
        )
        for task in tasks
    ]
    print_table(columns, rows, empty="no tasks; create one: fleet task create 'TITLE'")
    return ""
