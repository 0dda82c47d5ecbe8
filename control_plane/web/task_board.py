"""The board of tasks: what is read for its page, and for the news about it."""

from __future__ import annotations

from control_plane.contract.declarations.task_documents import TaskSummary
from control_plane.core import Caller, Core
from control_plane.operations.tasks import reading
from control_plane.web.forms.filters import Filters
from shared.states import TaskStatus

BOARD = ((TaskStatus.OPEN, 100), (TaskStatus.FAILED, 100), (TaskStatus.IN_PROGRESS, 100), (TaskStatus.DONE, 20))
"""States on the board, each with the number of tasks that are read."""
NARROWS = ("assignee", "project", "text")


def board_tasks(core: Core, caller: Caller, filters: Filters) -> list[TaskSummary]:
    """The tasks on the board, in the order of their states. Raises Refused for a wrong term."""
    arguments = filters.arguments()
    terms = {name: arguments[name] for name in NARROWS}
    read = (reading.list_(core, caller, status=status, limit=limit, **terms) for status, limit in BOARD)
    return [task for tasks in read for task in tasks]
