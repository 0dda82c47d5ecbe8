"""Brings a session up to date when the session that it builds on has new work.

The order for it merges that work in. Its model is asked only about conflicts and about checks that fail afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.core import Caller, Core
from control_plane.core.rows import each_alone
from control_plane.db.groups import OrderGroup
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession
from control_plane.db.stacks import Stack
from control_plane.operations.orders.next_turn import next_turn
from control_plane.orders.conversations.entries import locked
from control_plane.orders.conversations.history import last_work, way_to
from control_plane.orders.draft import Draft, create_order
from control_plane.orders.numbers import lock_numbers
from control_plane.orders.races import race_of
from shared.errors import Refused
from shared.states import OrderStatus
from shared.terminal import logs

log = logs.get(__name__)
_PROMPT = (
    "Bring this branch up to date with {orders}, whose work it builds on and has changed since. "
    "That work is merged in already. Where both sides changed the same lines, keep what each of them wanted."
)


def stacks_due() -> Select[str]:
    """The sessions that are due, have work, and have no unended order. Work of an undecided race does not count."""
    own = Order.session_id == Stack.session_id
    unended = select(Order.id).where(own, Order.ended_at.is_(None)).exists()
    undecided = OrderGroup.id == Order.group_id, OrderGroup.kind == "race", OrderGroup.winner_id.is_(None)
    work = select(Order.id).where(
        own, Order.head_commit.is_not(None), ~select(OrderGroup.id).where(*undecided).exists()
    )
    return select(Stack.session_id).where(Stack.due, ~unended, work.exists()).distinct()


def restack(core: Core) -> None:
    """Submit an order for each session that is due; may be repeated."""
    with core.database.read() as db:
        due = db.scalars(stacks_due()).all()

    def bring_up_to_date(session_id: str) -> None:
        order_id = core.database.transact(partial(_restacked, core, session_id))
        if order_id is not None:
            core.broker.changed(order_id)

    each_alone("stacks", due, bring_up_to_date)


def _restacked(core: Core, session_id: str, db: Session) -> str | None:
    """The id of the order that brings the session up to date; None if there is nothing to do."""
    lock_numbers(db)
    chat = locked(db, session_id)
    stacks = db.scalars(select(Stack).where(Stack.session_id == session_id, Stack.due)).all()
    changed: list[Order] = []
    for stack in stacks:
        stack.due = False
        lower = _work_below(db, db.get_one(ChatSession, stack.lower_id))
        if lower is not None and lower.id != stack.order_id:
            changed.append(lower)
    last = last_work(db, way_to(db, chat.leaf_id))
    if not changed or last is None or not chat.restack or _is_over(db, last):
        return None
    try:
        with db.begin_nested():
            return create_order(db, core, _draft(db, last, changed)).id
    except Refused as refusal:
        # The next new work below is another occasion.
        log.warning("a session was not brought up to date", session=session_id, why=refusal.what)
        return None


def _work_below(db: Session, chat: ChatSession) -> Order | None:
    """The session's last work that another order can start after: that of an order that succeeded."""
    way = way_to(db, chat.leaf_id)
    return last_work(db, [entry for entry in way if entry.data["status"] == OrderStatus.SUCCEEDED])


def _is_over(db: Session, last: Order) -> bool:
    """Whether the session's work is no longer wanted: it lost its race, or its pull request is merged or closed."""
    race = race_of(db, last)
    lost = race is not None and race.winner_id not in {None, last.id}
    return lost or (last.pull_request or {}).get("state") in {"merged", "closed"}


def _draft(db: Session, last: Order, changed: Sequence[Order]) -> Draft:
    """An order on the same terms as the session's last work. It has no reviewer: the merged work had its own."""
    ids = [order.id for order in changed]
    named = f"order {ids[0]}" if len(ids) == 1 else f"orders {', '.join(ids[:-1])} and {ids[-1]}"
    organization = db.get_one(Organization, last.organization_id)
    caller = Caller(organization.id, organization.name, "operator", last.user, user_id=last.user_id)
    turn = next_turn(db, caller, last, _PROMPT.format(orders=named))
    return replace(turn, after=ids, merge_only=True, reviewer=None)
