"""What one query each finds for the inbox: tasks, races, notes and failed checks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm import aliased

from control_plane.contract.declarations.inbox import InboxItem, InboxKind
from control_plane.db.groups import OrderGroup
from control_plane.db.memory import MemoryNote
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.teams import Task
from control_plane.operations.access.roles import may
from control_plane.operations.inbox.dismissing import is_dismissed
from control_plane.operations.inbox.scope import InboxView
from control_plane.operations.tasks import reasons
from shared.states import OrderStatus, TaskStatus
from shared.titles import title

# --- tasks: those that are back with the user -----------------------------------------------------

_WITH_THE_USER = (TaskStatus.OPEN.value, TaskStatus.FAILED.value)


def count_tasks(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of tasks that are with the user."""
    return {"task": db.scalar(select(func.count()).select_from(Task).where(*_waiting_tasks(inbox))) or 0}


def task_items(db: Db, inbox: InboxView, limit: int) -> Iterator[InboxItem]:
    """The tasks that are with the user, newest first."""
    wanted = select(Task, Project.slug).join(Project, Project.id == Task.project_id).where(*_waiting_tasks(inbox))
    rows = db.execute(wanted.order_by(Task.updated_at.desc(), Task.id).limit(limit)).all()
    why = reasons.of_tasks(db, inbox.core, [task for task, _ in rows])
    for task, project in rows:
        failed = task.status == TaskStatus.FAILED
        command = f"fleet task retry {task.id}" if failed else f"fleet comment {task.id} '@AGENT TEXT'"
        yield InboxItem(
            id=f"task:{task.id}",
            kind="task",
            title=task.title,
            text=why[task.id],
            choices=[],
            default=None,
            deadline=None,
            since=task.updated_at,
            organization=inbox.organizations[task.organization_id],
            project=project,
            order=task.order_id,
            session=task.session_id,
            task=task.id,
            drone=None,
            user=task.user,
            waiting_for=None,
            may_answer=may(inbox.caller, "operator"),
            next=inbox.command(command, task.organization_id),
        )


def _waiting_tasks(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    mine = (Task.user_id == inbox.user_id,) if inbox.user_id is not None else ()
    return (
        Task.organization_id.in_(inbox.organizations),
        Task.status.in_(_WITH_THE_USER),
        Task.assignee_id.is_(None),
        *mine,
    )


# --- races: all orders have ended, some left work, and no user has taken one or dismissed it ------

_OWN = Order.group_id == OrderGroup.id
_LAST_END = select(func.max(Order.ended_at)).where(_OWN).correlate(OrderGroup).scalar_subquery()
_HAS_WORK = (Order.status == OrderStatus.SUCCEEDED.value, Order.head_commit.is_not(None))
_JUDGE = aliased(Order)
_JUDGED = select(_JUDGE.id).where(_JUDGE.id == OrderGroup.judge_id, _JUDGE.ended_at.is_not(None)).exists()
_UNDECIDED = (
    OrderGroup.kind == "race",
    OrderGroup.winner_id.is_(None),
    ~is_dismissed(OrderGroup.id, _LAST_END),
    or_(OrderGroup.pick != "judge", _JUDGED),
    ~select(Order.id).where(_OWN, Order.ended_at.is_(None)).exists(),
    select(Order.id).where(_OWN, *_HAS_WORK).exists(),
)
"""Built once: every page counts these races."""


def count_races(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of races to decide."""
    return {"race": db.scalar(select(func.count()).select_from(OrderGroup).where(*_undecided_races(inbox))) or 0}


def race_items(db: Db, inbox: InboxView, limit: int) -> Iterator[InboxItem]:
    """The races to decide, newest first."""
    wanted = select(OrderGroup).where(*_undecided_races(inbox)).order_by(OrderGroup.created_at.desc()).limit(limit)
    for race in db.scalars(wanted).all():
        orders = db.scalars(select(Order).where(Order.group_id == race.id).order_by(Order.number)).all()
        choices = [order for order in orders if order.status == OrderStatus.SUCCEEDED and order.head_commit]
        yield InboxItem(
            id=f"race:{race.id}",
            kind="race",
            title=race.name or title(orders[0].prompt),
            text=f"{len(choices)} of {len(orders)} orders succeeded and left work; take one",
            choices=[],
            default=None,
            deadline=None,
            since=max(order.ended_at for order in orders if order.ended_at is not None),
            organization=inbox.organizations[race.organization_id],
            project=db.get_one(Project, orders[0].project_id).slug,
            order=None,
            session=None,
            task=None,
            drone=None,
            race=race.id,
            user=race.user,
            waiting_for=None,
            may_answer=may(inbox.caller, "operator"),
            next=inbox.command(f"fleet race take {race.id} {choices[0].id}", race.organization_id),
        )


def _undecided_races(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    """Of a race: it has no winner and was not dismissed, nothing runs that may win or choose, and there is work."""
    mine = (OrderGroup.user_id == inbox.user_id,) if inbox.user_id is not None else ()
    return (
        OrderGroup.organization_id.in_(inbox.organizations),
        OrderGroup.created_at > inbox.oldest,
        *_UNDECIDED,
        *mine,
    )


# --- notes: what agents propose to remember, until a user keeps or refuses it ---------------------


def count_notes(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of notes that wait for a decision."""
    waiting = select(func.count()).select_from(MemoryNote).where(*_proposed_notes(inbox))
    return {"memory": db.scalar(waiting) or 0}


def note_items(db: Db, inbox: InboxView, limit: int) -> Iterator[InboxItem]:
    """The notes that wait for a decision, newest first."""
    wanted = (
        select(MemoryNote, Project.slug, Order)
        .outerjoin(Project, Project.id == MemoryNote.project_id)
        .outerjoin(Order, Order.id == MemoryNote.order_id)
        .where(*_proposed_notes(inbox))
    )
    for note, project, order in db.execute(wanted.order_by(MemoryNote.created_at.desc(), MemoryNote.id).limit(limit)):
        yield InboxItem(
            id=f"memory:{note.id}",
            kind="memory",
            title=note.text,
            text=note.why,
            choices=[],
            default=None,
            deadline=None,
            since=note.created_at,
            organization=inbox.organizations[note.organization_id],
            project=project,
            order=note.order_id,
            session=order.session_id if order else None,
            task=order.task_id if order else None,
            drone=None,
            user=order.user if order else "",
            waiting_for=None,
            may_answer=may(inbox.caller, "operator"),
            next=inbox.command(f"fleet memory accept {note.id}", note.organization_id),
        )


def _proposed_notes(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    mine = (MemoryNote.user_id == inbox.user_id,) if inbox.user_id is not None else ()
    return (MemoryNote.organization_id.in_(inbox.organizations), MemoryNote.state == "proposed", *mine)


# --- checks: providers and projects that did not work when a drone tried them, until they do ------

_CHECKED: dict[Literal["provider", "project"], type[Provider | Project]] = {"provider": Provider, "project": Project}


def count_failed_checks(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of providers, and of projects, whose last check failed."""
    failed = {kind: _failed_checks(inbox, checked).subquery() for kind, checked in _CHECKED.items()}
    return {kind: db.scalar(select(func.count()).select_from(rows)) or 0 for kind, rows in failed.items()}


def failed_check_items(db: Db, inbox: InboxView, only: InboxKind | None, limit: int) -> Iterator[InboxItem]:
    """The providers and projects whose last check failed, newest first, with what fixes them."""
    for kind, checked in _CHECKED.items():
        if only not in {None, kind}:
            continue
        rows = db.execute(_failed_checks(inbox, checked).order_by(Order.ended_at.desc(), checked.id).limit(limit)).all()
        for row, order in rows:
            yield _failed_check_item(inbox, kind, row, order)


def _failed_check_item(
    inbox: InboxView, kind: Literal["provider", "project"], row: Provider | Project, order: Order | None
) -> InboxItem:
    name, report = row.name if isinstance(row, Provider) else row.slug, row.check_report or {}
    again = f"fleet {kind} test {name}"
    fix = report.get("next") or again
    since = order.ended_at if order is not None else None
    return InboxItem(
        id=f"{kind}:{row.id}",
        kind=kind,
        title=name,
        text=report.get("summary", ""),
        choices=[],
        default=None,
        deadline=None,
        since=since or datetime.fromisoformat(report.get("at") or row.created_at.isoformat()),
        organization=inbox.organizations[row.organization_id],
        project=name if kind == "project" else None,
        order=None,
        session=None,
        task=None,
        drone=report.get("drone"),
        user=order.user if order is not None else "",
        waiting_for=None,
        may_answer=may(inbox.caller, "operator" if fix == again else "admin"),
        # Some fixes are sentences: what to do on the drone's machine.
        next=inbox.command(fix, row.organization_id) if fix.startswith("fleet ") else fix,
    )


def _failed_checks(inbox: InboxView, checked: type[Provider | Project]) -> Select[Any, Any]:
    """Each with the order that tried it, or None. While another one tries it again, it has not failed."""
    wanted = select(checked, Order).outerjoin(Order, Order.id == checked.check_order_id)
    mine = (Order.user_id == inbox.user_id,) if inbox.user_id is not None else ()
    return wanted.where(
        checked.organization_id.in_(inbox.organizations),
        checked.check_state == "failed",
        checked.removed_at.is_(None),
        *mine,
    )
