"""The board of tasks: what is read for its page, and for the news about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from control_plane.contract.declarations.task_documents import TaskSummary
from control_plane.contract.documents.base import USER
from control_plane.core import Caller, Core
from control_plane.operations.tasks import reading
from control_plane.web.forms.filters import Filters
from shared.states import TaskStatus

BOARD = {TaskStatus.OPEN: 100, TaskStatus.FAILED: 100, TaskStatus.IN_PROGRESS: 100, TaskStatus.DONE: 20}
"""States on the board, each with the number of tasks that are read; of open ones, as many of the user as of agents."""
NARROWS = ("assignee", "project", "text")
WITH_USER = "with you"
COLUMNS = (WITH_USER, "open", "in progress", "done")


@dataclass(frozen=True)
class Column:
    """A column of the board."""

    name: str
    tasks: Sequence[TaskSummary]
    more: str | None
    """The address of the list, if there may be more tasks than were read."""


def board_tasks(core: Core, caller: Caller, filters: Filters) -> list[TaskSummary]:
    """The tasks on the board, in the order of their states. Raises Refused for a wrong term."""
    arguments = filters.arguments()
    terms = {name: arguments[name] for name in NARROWS}
    of_user = {**terms, "assignee": terms["assignee"] or USER}
    read = [reading.list_(core, caller, status=TaskStatus.OPEN, limit=BOARD[TaskStatus.OPEN], **of_user)]
    if terms["assignee"] is None:
        del terms["assignee"]
        read.append(reading.open_with_agents(core, caller, limit=BOARD[TaskStatus.OPEN], **terms))
    rest = (each for each in BOARD.items() if each[0] != TaskStatus.OPEN)
    read += [reading.list_(core, caller, status=status, limit=limit, **terms) for status, limit in rest]
    return [task for tasks in read for task in tasks]


def columns_of(tasks: Sequence[TaskSummary], filters: Filters) -> list[Column]:
    """The columns of the board, each with its tasks: what is with the user comes first."""
    found: dict[str, list[TaskSummary]] = {name: [] for name in COLUMNS}
    for task in tasks:
        found[WITH_USER if is_with_user(task) else task.status.replace("_", " ")].append(task)
    return [Column(name, own, _more(name, own, filters)) for name, own in found.items()]


def is_with_user(task: TaskSummary) -> bool:
    """Whether it is the user's turn."""
    return task.status == TaskStatus.FAILED or (task.status == TaskStatus.OPEN and task.assignee == USER)


def _more(name: str, tasks: Sequence[TaskSummary], filters: Filters) -> str | None:
    counts = Counter(task.status for task in tasks)
    full = next((status for status, limit in BOARD.items() if counts[status] >= limit), None)
    if full is None:
        return None
    narrowed: dict[str, Any] = {"status": full.value}
    if (name, full) == (WITH_USER, TaskStatus.OPEN):
        narrowed["assignee"] = USER
    return replace(filters.without(), terms={**filters.without().terms, **narrowed}).address
