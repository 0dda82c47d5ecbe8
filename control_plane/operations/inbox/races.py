"""Races in the inbox: all orders have ended, some left work, and no user has taken one or dismissed the race."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm import aliased

from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.declarations.inbox import InboxItem
from control_plane.operations.access.roles import may
from control_plane.operations.inbox.dismissing import is_dismissed
from control_plane.operations.inbox.scope import InboxView
from shared.states import OrderStatus
from shared.titles import title

_OWN = Order.group_id == OrderGroup.id
_HAS_WORK = (Order.status == OrderStatus.SUCCEEDED.value, Order.head_commit.is_not(None))
_JUDGE = aliased(Order)
_JUDGED = select(_JUDGE.id).where(_JUDGE.id == OrderGroup.judge_id, _JUDGE.ended_at.is_not(None)).exists()
_UNDECIDED = (
    OrderGroup.kind == "race",
    OrderGroup.winner_id.is_(None),
    ~is_dismissed(OrderGroup.id, OrderGroup.created_at),
    or_(OrderGroup.pick != "judge", _JUDGED),
    ~select(Order.id).where(_OWN, Order.ended_at.is_(None)).exists(),
    select(Order.id).where(_OWN, *_HAS_WORK).exists(),
)
"""Built once: every page counts these races."""


def count_races(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of races to decide."""
    return {"race": db.scalar(select(func.count()).select_from(OrderGroup).where(*_undecided(inbox))) or 0}


def race_items(db: Db, inbox: InboxView, limit: int) -> Iterator[InboxItem]:
    """The races to decide, newest first."""
    wanted = select(OrderGroup).where(*_undecided(inbox)).order_by(OrderGroup.created_at.desc()).limit(limit)
    for race in db.scalars(wanted).all():
        orders = db.scalars(select(Order).where(Order.group_id == race.id).order_by(Order.number)).all()
        choices = [order for order in orders if order.status == OrderStatus.SUCCEEDED and order.head_commit]
        yield InboxItem(
            id=f"race:{race.id}",
            kind="race",
            title=race.name or title(orders[0].prompt),
            text=f"{len(choices)} of {len(orders)} orders left work; take one",
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


def _undecided(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    """Of a race: it has no winner and was not dismissed, nothing runs that may win or choose, and there is work."""
    mine = (OrderGroup.user_id == inbox.user_id,) if inbox.user_id is not None else ()
    return (
        OrderGroup.organization_id.in_(inbox.organizations),
        OrderGroup.created_at > inbox.oldest,
        *_UNDECIDED,
        *mine,
    )
