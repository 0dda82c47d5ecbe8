"""Tasks: threads of comments that agents and people work on by hand-offs."""

from control_plane.core.lookups.tasks import find_task
from control_plane.operations.tasks.acting import assign, comment, create, done, reopen, retry
from control_plane.operations.tasks.reading import list_, show
from control_plane.operations.tasks.stopping import cancel, preempt
from control_plane.teams.new_task import check_request, create_within

__all__ = [
    "assign",
    "cancel",
    "check_request",
    "comment",
    "create",
    "create_within",
    "done",
    "find_task",
    "list_",
    "preempt",
    "reopen",
    "retry",
    "show",
]
