"""User comments on tasks: a tag hands the task over; a comment without a tag is only recorded (S-042)."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Caller, Core
from control_plane.db.teams import Agent, Task
from control_plane.declarations import tasks as declared
from control_plane.declarations.task_documents import CommentDocument, CommentRequest
from control_plane.documents.base import USER
from control_plane.lookups import tasks
from control_plane.operations.gateway import performs
from control_plane.operations.tasks import reading
from control_plane.operations.tasks.acting import give
from control_plane.teams.claiming import claim_tasks
from control_plane.teams.new_task import check_long_text
from control_plane.teams.tags import last_valid, tags_in
from control_plane.teams.thread import person_wrote
from control_plane.validation.checks import shown
from shared.errors import NotFound
from shared.states import TaskStatus

_TAKES_COMMENTS = (TaskStatus.OPEN, TaskStatus.FAILED)


@performs(declared.COMMENT)
def comment(core: Core, caller: Caller, task_id: str, request: CommentRequest) -> CommentDocument:
    """Add to the thread of an open or failed task. For operators.

    The last valid tag assigns the task to that agent, or to the user. Raises NotFound, and stores nothing, if there are
    tags and none is valid; Conflict while the task is in progress, done or canceled; Invalid and TooLarge for the text.
    """
    text = check_long_text("the comment", request.text)

    def write(db: Session) -> tuple[CommentDocument, str | None, list[str]]:
        task = tasks.locked_task(db, caller, task_id)
        if task.status not in _TAKES_COMMENTS:
            raise tasks.refused(task, "users can comment only on open or failed tasks")
        to = _tagged(db, caller, text)
        written = person_wrote(db, core, task, caller.user, text)
        _hand_over(db, core, task, to)
        return reading.comment_document(written), to, claim_tasks(db, core, caller.organization_id)

    written, to, begun = core.database.transact(write)
    for order_id in begun:
        core.broker.changed(order_id)
    return written.model_copy(update={"note": _what_follows(core, caller, task_id, to)})


def _tagged(db: Session, caller: Caller, text: str) -> str | None:
    """The name in the last valid tag; None without a tag. Raises NotFound if no tag is valid."""
    tags = tags_in(text)
    if not tags:
        return None
    alive = select(Agent.name).where(Agent.organization_id == caller.organization_id, Agent.removed_at.is_(None))
    names = [*db.scalars(alive.order_by(Agent.name)), USER]
    to = last_valid(text, names)
    if to is None:
        tagged = ", ".join(shown(f"@{tag}") for tag in dict.fromkeys(tags[:3]))
        raise NotFound(
            f"the comment tags {tagged}: unknown agent or user",
            code="E-TASK-TAG",
            why="the comment was not saved",
            next=f"tag one of {', '.join('@' + name for name in names[-10:])}; put other @ words in `backticks`",
        )
    return to


def _hand_over(db: Session, core: Core, task: Task, to: str | None) -> None:
    if to is None:
        # A comment without a tag is a user intervention too.
        task.hand_offs, task.updated_at = 0, core.clock.now()
    else:
        give(db, core, task, tasks.assignee(db, task.organization_id, to), None)


def _what_follows(core: Core, caller: Caller, task_id: str, to: str | None) -> str:
    said = reading.next_for(reading.summary(core, caller, task_id))
    return said if to is not None else f"saved without a tag. {said}"
