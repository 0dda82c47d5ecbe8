"""Orders in the inbox: those that wait for a user, and ended ones that need a follow-up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm import aliased

from control_plane.contract.declarations.inbox import InboxItem, InboxKind
from control_plane.contract.declarations.operation import Role
from control_plane.core.lookups.sessions import session_title
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.waits import Wait
from control_plane.operations.access.roles import may
from control_plane.operations.inbox.dismissing import NEEDED, is_dismissed
from control_plane.operations.inbox.scope import InboxView
from control_plane.operations.row_documents import waiting_document
from control_plane.orders.follow_up import FollowUp
from shared.reason_text import RAISES
from shared.states import OrderStatus
from shared.titles import title

MAX_TEXT = 4000
"""Characters of a response; its end, where the question is."""
_KINDS = {needed: cast("InboxKind", kind) for kind, needed in NEEDED.items()}
_ANSWERS = {"question": "fleet answer {0}", "plan": "fleet plan show {0}"}
_FOLLOW_UPS: Mapping[FollowUp, str] = {
    "question": "fleet submit 'TEXT' --session {1}",
    "verification": "fleet resume {0} --say 'TEXT'",
    "budget": "fleet resume {0}",
}

_LATER = aliased(Order)
_NEEDS_FOLLOW_UP = (
    Order.follow_up.is_not(None),
    ~is_dismissed(Order.id, Order.ended_at),
    ~select(_LATER.id).where(_LATER.session_id == Order.session_id, _LATER.number > Order.number).exists(),
)
"""Built once: every page counts these orders."""


def count_waits(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of orders' open waits, by kind."""
    counted = select(Wait.kind, func.count()).join(Order, Order.id == Wait.order_id).where(*_waiting(inbox))
    return {kind: count for kind, count in db.execute(counted.group_by(Wait.kind))}


def waiting_items(db: Db, inbox: InboxView, kind: InboxKind | None, limit: int) -> Iterator[InboxItem]:
    """The open waits, nearest deadline first."""
    wanted = (
        select(Order, Project.slug, Drone.name, session_title(), Wait)
        .join(Wait, Wait.order_id == Order.id)
        .join(Project, Project.id == Order.project_id)
        .outerjoin(Drone, Drone.id == Order.drone_id)
    ).where(*_waiting(inbox), *([Wait.kind == kind] if kind else ()))
    # Rows without a deadline last, on both databases.
    nearest = wanted.order_by(Wait.deadline.is_(None), Wait.deadline, Wait.number.desc()).limit(limit)
    for order, project, drone, called, wait in db.execute(nearest):
        yield InboxItem(
            id=f"{wait.kind}:{order.id}:{wait.subject}",
            kind=cast("InboxKind", wait.kind),
            text=wait.text if wait.kind == "question" else wait.details["why"],
            choices=wait.choices,
            default=wait.default,
            deadline=wait.deadline,
            since=wait.asked_at,
            waiting_for=waiting_document(wait),
            may_answer=may(inbox.caller, cast("Role", wait.role)),
            next=inbox.command(_answer(wait).format(order.id), order.organization_id),
            **_subject(inbox, order, (project, drone, called)),
        )


def _answer(wait: Wait) -> str:
    """The command that answers, as a pattern for the order's id."""
    if wait.kind == "limit":
        return f"fleet approve {{0}} {RAISES[wait.details.get('limit', 'cost')]}"
    return _ANSWERS.get(wait.kind, "fleet approve {0}")


def count_follow_ups(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of ended orders that need a follow-up, by kind."""
    counted = select(Order.follow_up, func.count()).where(*_unanswered(inbox)).group_by(Order.follow_up)
    return {_KINDS[cast("FollowUp", needed)]: count for needed, count in db.execute(counted)}


def ended_items(db: Db, inbox: InboxView, kind: InboxKind | None, limit: int) -> Iterator[InboxItem]:
    """Ended orders that need a follow-up, newest first."""
    wanted = (
        select(Order, Project.slug, Drone.name, session_title())
        .join(Project, Project.id == Order.project_id)
        .outerjoin(Drone, Drone.id == Order.drone_id)
        .where(*_unanswered(inbox))
    )
    if kind is not None:
        wanted = wanted.where(Order.follow_up == NEEDED.get(kind, ""))
    for order, project, drone, called in db.execute(
        wanted.order_by(Order.ended_at.desc(), Order.number.desc()).limit(limit)
    ):
        needed = cast("FollowUp", order.follow_up)
        command = _FOLLOW_UPS[needed].format(order.id, order.session_id)
        yield InboxItem(
            id=f"{_KINDS[needed]}:{order.id}",
            kind=_KINDS[needed],
            text=(order.response or "")[-MAX_TEXT:] if needed == "question" else order.reason,
            choices=[],
            default=None,
            deadline=None,
            since=order.ended_at,
            waiting_for=None,
            may_answer=may(inbox.caller, "operator"),
            next=inbox.command(command, order.organization_id),
            **_subject(inbox, order, (project, drone, called)),
        )


def _waiting(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    """Of a wait and its order: no one has answered it. An answered one waits for its drone, and for no user."""
    return (
        Wait.organization_id.in_(inbox.organizations),
        Wait.closed_at.is_(None),
        Wait.answered_at.is_(None),
        Order.run_id == Wait.run_id,
        Order.status == OrderStatus.AWAITING_APPROVAL.value,
        *_mine(inbox),
    )


def _unanswered(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    """Of an ended order: it needs a follow-up, was not dismissed, and no later order of its session exists."""
    own = Order.organization_id.in_(inbox.organizations), Order.ended_at > inbox.oldest
    return (*own, *_NEEDS_FOLLOW_UP, *_mine(inbox))


def _mine(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    return (Order.user_id == inbox.user_id,) if inbox.user_id is not None else ()


def _subject(inbox: InboxView, order: Order, names: tuple[str, str | None, str]) -> dict[str, Any]:
    project, drone, called = names
    return {
        "title": title(called),
        "organization": inbox.organizations[order.organization_id],
        "project": project,
        "order": order.id,
        "session": order.session_id,
        "task": order.task_id,
        "drone": drone,
        "user": order.user,
    }
