"""The reason for a task's state in one sentence, and what would change it. Derived on read, never stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session, load_only

from control_plane.contract.documents.base import SYSTEM, USER
from control_plane.core import Core
from control_plane.db.orders import REASON, Order
from control_plane.db.runs import Run
from control_plane.db.teams import Comment, Task
from control_plane.operations.orders import progress
from control_plane.teams.why_waiting import why_each_waits
from shared.reasons import ForPerson
from shared.states import OrderStatus, TaskStatus

MAX_QUOTED = 160
_T = TaskStatus


def of_tasks(db: Session, core: Core, tasks: Sequence[Task]) -> dict[str, str]:
    """A sentence for each task, by its id."""
    last = _last_comments(db, [task.id for task in tasks if task.status != _T.IN_PROGRESS])
    at_work = _of_runs(db, core.clock.now(), [task for task in tasks if task.status == _T.IN_PROGRESS])
    waits = why_each_waits(db, tasks)
    return {task.id: at_work.get(task.id) or waits.get(task.id) or _of_user(task, last.get(task.id)) for task in tasks}


def _of_user(task: Task, last: Comment | None) -> str:
    """The sentence for a task that is assigned to the user or has ended."""
    match task.status:
        case _T.DONE:
            return f"{_quoted(last, 'done')}; to reopen: fleet task reopen {task.id}"
        case _T.CANCELED:
            return _quoted(last, "canceled")
        case _T.FAILED:
            return f"{_quoted(last, 'failed')}; to retry: fleet task retry {task.id}"
    return f"waiting for you: {_quoted(last, 'no comments yet')}"


def _quoted(comment: Comment | None, otherwise: str) -> str:
    """The beginning of the last comment, with its author unless that is the system."""
    if comment is None:
        return otherwise
    line = " ".join(comment.text.split())
    line = line if len(line) <= MAX_QUOTED else f"{line[: MAX_QUOTED - 1]}…"
    who = {SYSTEM: "", USER: f"{comment.user or 'a user'} wrote: "}.get(comment.author, f"{comment.author} wrote: ")
    return who + (line.removesuffix(".") if comment.author == SYSTEM else line)


def _last_comments(db: Session, task_ids: Iterable[str]) -> dict[str, Comment]:
    newest = select(func.max(Comment.id)).where(Comment.task_id.in_(list(task_ids))).group_by(Comment.task_id)
    ids = db.scalars(newest).all()
    return {comment.task_id: comment for comment in db.scalars(select(Comment).where(Comment.id.in_(ids)))}


def _of_runs(db: Session, now: datetime, tasks: Sequence[Task]) -> dict[str, str]:
    """The activity of the runs of these tasks, or the reason why their orders wait."""
    order_ids = [task.order_id for task in tasks if task.order_id]
    if not order_ids:
        return {}
    wanted = select(Order).where(Order.id.in_(order_ids)).options(load_only(Order.run_id, *REASON))
    orders = {order.id: order for order in db.scalars(wanted)}
    run_ids = [order.run_id for order in orders.values() if order.run_id]
    runs: Mapping[str, Run] = {run.id: run for run in db.scalars(select(Run).where(Run.id.in_(run_ids)))}
    return {
        task.id: _at_work(order, runs.get(order.run_id or ""), now)
        for task in tasks
        if (order := orders.get(task.order_id or "")) is not None
    }


def _at_work(order: Order, run: Run | None, now: datetime) -> str:
    if order.status == OrderStatus.AWAITING_APPROVAL:
        if isinstance(waits := order.facts.waits, ForPerson) and waits.about == "question":
            return f"its agent is waiting for your answer: fleet answer {order.id}"
        return f"a call is waiting for your approval: fleet approve {order.id}, or fleet deny {order.id}"
    if order.status == OrderStatus.RUNNING and run is not None:
        return progress.of_run(run, now) or "working"
    return order.reason
