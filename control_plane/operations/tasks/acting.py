"""User actions on tasks (S-110 to S-114). Each is one transaction under the organization's lock.

Of two concurrent actions, the second sees the result of the first, and raises Conflict if that leaves nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.automation.notices import notify
from control_plane.contract.declarations import tasks as declared
from control_plane.contract.declarations.task_documents import (
    AssignRequest,
    CommentDocument,
    CommentRequest,
    TaskDocument,
    TaskRequest,
    TaskRetryRequest,
)
from control_plane.contract.documents.base import SYSTEM, USER
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.core.lookups import tasks
from control_plane.core.lookups.agents import find_agent
from control_plane.db.audit_chain import concerns
from control_plane.db.runs import Run
from control_plane.db.teams import Agent, Comment, Task
from control_plane.operations.gateway import performs
from control_plane.operations.tasks import reading
from control_plane.orders.status_changes import move_task
from control_plane.teams import system_notes
from control_plane.teams.claiming import claim_tasks, give_to_user
from control_plane.teams.new_task import check_long_text, check_request, create_within
from control_plane.teams.system_notes import Note
from control_plane.teams.tags import last_valid, tags_in
from control_plane.teams.thread import person_wrote, system_says
from shared.errors import Invalid, NotFound, Precondition
from shared.states import TaskStatus

_T = TaskStatus
_ENDED_RUN = (_T.DONE, _T.FAILED)
_BETWEEN_RUNS = (_T.OPEN, _T.FAILED)


@performs(declared.ADD)
def create(core: Core, caller: Caller, request: TaskRequest) -> TaskDocument:
    """Create a task; its first run begins as soon as the limits permit (S-022). For operators.

    Raises Invalid and TooLarge for the texts, NotFound for project and assignee, Precondition without a project or an
    agent to choose.
    """
    check_request(request)

    def work(db: Session) -> tuple[str, str | None]:
        task = create_within(db, core, caller, request)
        concerns(task.id)
        return task.id, task.order_id

    task_id, order_id = core.database.transact(work)
    if order_id is not None:
        core.broker.changed(order_id)
    return reading.answer(core, caller, task_id)


@performs(declared.DONE)
def done(core: Core, caller: Caller, task_id: str) -> TaskDocument:
    """Close a task that is assigned to the user (S-111). For operators. Raises NotFound, Conflict."""

    def work(db: Session, task: Task) -> None:
        if task.status not in _BETWEEN_RUNS or task.assignee_id is not None:
            raise tasks.refused(task, "only a task assigned to you can be marked as done")
        end(db, core, task, _T.DONE, system_notes.done(caller.user))

    return acted(core, caller, task_id, work)


@performs(declared.REOPEN)
def reopen(core: Core, caller: Caller, task_id: str) -> TaskDocument:
    """Reopen a done or failed task, assigned to the user (S-112). For operators. Raises NotFound, Conflict."""

    def work(db: Session, task: Task) -> None:
        if task.status not in _ENDED_RUN:
            raise tasks.refused(task, "only a done or a failed task can be reopened")
        give(db, core, task, None, system_notes.reopened(caller.user))

    return acted(core, caller, task_id, work)


@performs(declared.RETRY)
def retry(core: Core, caller: Caller, task_id: str, request: TaskRetryRequest) -> TaskDocument:
    """Retry a done or failed task with the named agent, else with the agent of its latest run (S-113). For operators.

    A run that could not start counts as well.

    Raises NotFound, Conflict, Invalid for `user`, Precondition if no agent has run on the task or the last one was
    removed.
    """

    def work(db: Session, task: Task) -> None:
        if task.status not in _ENDED_RUN:
            raise tasks.refused(task, "only a done or a failed task can be retried")
        agent = _to_retry(db, caller, task, request.assignee)
        give(db, core, task, agent, system_notes.retried(caller.user, agent.name))

    if request.assignee == USER:
        raise Invalid(
            "a task is retried by an agent, not by the user",
            code="E-TASK-ASSIGNEE",
            next=f"fleet task reopen {task_id.upper()}    assigns it to you",
        )
    return acted(core, caller, task_id, work)


@performs(declared.ASSIGN)
def assign(core: Core, caller: Caller, task_id: str, request: AssignRequest) -> TaskDocument:
    """Assign an open or failed task to an agent or to the user, as a comment with a tag does (S-042). For operators.

    Raises NotFound for task and agent, Conflict.
    """

    def work(db: Session, task: Task) -> None:
        if task.status not in _BETWEEN_RUNS:
            raise tasks.refused(task, "only an open or a failed task can be assigned")
        agent = tasks.assignee(db, caller.organization_id, request.assignee)
        give(db, core, task, agent, system_notes.assigned(caller.user, request.assignee))

    return acted(core, caller, task_id, work)


def acted(core: Core, caller: Caller, task_id: str, work: Callable[[Session, Task], None]) -> TaskDocument:
    """Do `work` on the task and begin the tasks that may begin now; return the task and a note on what happens next."""

    def write(db: Session) -> list[str]:
        work(db, tasks.locked_task(db, caller, task_id))
        return claim_tasks(db, core, caller.organization_id)

    for order_id in core.database.transact(write):
        core.broker.changed(order_id)
    return reading.answer(core, caller, task_id)


def give(db: Session, core: Core, task: Task, agent: Agent | None, note: Note | None) -> None:
    """Open the task for an agent, at the end of the queue, or for the user (S-042, S-051).

    A user intervened, so the count of hand-offs restarts.
    """
    task.hand_offs, task.ended_at = 0, None
    if agent is None:
        give_to_user(db, core, task, _T.OPEN, note)
        return
    now = core.clock.now()
    move_task(db, task, _T.OPEN, assignee_id=agent.id, queued_at=now, updated_at=now)
    if note is not None:
        system_says(db, core, task, note)


def end(  # noqa: PLR0913, PLR0917 - the task, its end, and the notice about it
    db: Session, core: Core, task: Task, to: TaskStatus, note: Note, run_id: str | None = None
) -> None:
    """Close the task as done or canceled, and notify subscribers."""
    now = core.clock.now()
    move_task(db, task, to, assignee_id=None, updated_at=now, ended_at=now)
    system_says(db, core, task, note, run_id)
    data = {"task": task.id, "title": task.title, "status": task.status, "assignee": USER, "order": task.order_id}
    notify(db, core, task.organization_id, f"task.{to}", {**data, "reason": note.text, "run": run_id})


def _to_retry(db: Session, caller: Caller, task: Task, name: str | None) -> Agent:
    if name is not None:
        return find_agent(db, caller.organization_id, name)
    agent = _last_agent(db, task)
    if agent is not None and agent.removed_at is None:
        return agent
    raise Precondition(
        f"no agent to retry task {task.id}",
        code="E-TASK-AGENT",
        why=f"{agent.name}, the last agent, was removed" if agent else "no agent has run on it yet",
        next=f"fleet task retry {task.id} --assign AGENT",
    )


def _last_agent(db: Session, task: Task) -> Agent | None:
    """The agent whose run was the last one to start, or to fail to."""
    refused = select(Comment.agent_id, Comment.at).where(
        Comment.task_id == task.id, Comment.author == SYSTEM, Comment.agent_id.is_not(None)
    )
    begun = select(Run.agent_id, Run.started_at).where(Run.task_id == task.id, Run.agent_id.is_not(None))
    found = [
        *db.execute(refused.order_by(Comment.id.desc()).limit(1)),
        *db.execute(begun.order_by(Run.started_at.desc(), Run.id.desc()).limit(1)),
    ]
    return db.get(Agent, max(found, key=itemgetter(1))[0]) if found else None


# --- comments: a tag hands the task over, a comment without one is only recorded (S-042) ----------

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
