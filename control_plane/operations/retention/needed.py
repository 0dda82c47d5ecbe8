"""What is never removed: sessions that unfinished work builds on, and the last work of each session.

Whole sessions are protected rather than single orders: the turns of a session build on each other, and a session too
many costs some space, while one too few costs work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import Session, aliased

from control_plane.db.batches import BatchRow
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.db.teams import Task
from control_plane.operations.retention.rules import MAY_RUN_AGAIN
from shared.states import OrderStatus, TaskStatus

CHUNK = 500
_MAY_RUN_AGAIN = (OrderStatus.FAILED, OrderStatus.CANCELED)
_OPEN_TASKS = (TaskStatus.OPEN, TaskStatus.IN_PROGRESS, TaskStatus.FAILED)


def chunks(ids: Iterable[str], size: int = CHUNK) -> Iterable[list[str]]:
    """The ids in lists of at most `size`, sorted: a statement may have only so many parameters."""
    whole = sorted(ids)
    return (whole[start : start + size] for start in range(0, len(whole), size))


def needed_sessions(db: Session, now: datetime) -> set[str]:
    """The sessions of which nothing may be removed, with those that they were forked from.

    These are the sessions of orders that have not ended, or that may still be resumed; of all orders that such an order
    starts after; of graphs, batches and races with such an order, or undecided; and of tasks that are not done.
    """
    may_run = and_(Order.purpose == "work", Order.status.in_(_MAY_RUN_AGAIN), Order.ended_at > now - MAY_RUN_AGAIN)
    live = or_(Order.ended_at.is_(None), may_run)
    groups = set(db.scalars(select(Order.group_id).where(live, Order.group_id.is_not(None)).distinct()))
    groups |= set(db.scalars(_undecided_races())) | set(db.scalars(_unfinished_batches()))
    needed = set(db.scalars(select(Order.session_id).where(live).distinct()))
    for some in chunks(map(str, groups)):
        needed |= set(db.scalars(select(Order.session_id).where(Order.group_id.in_(some))))
    of_tasks = select(ChatSession.id).join(Task, Task.id == ChatSession.task_id).where(Task.status.in_(_OPEN_TASKS))
    needed |= set(db.scalars(of_tasks))
    needed |= _built_on(db, live)
    return with_ancestors(db, needed)


def fresh_forks(db: Session, since: datetime) -> set[str]:
    """The sessions with a fork in which something happened since then, and the forks themselves."""
    own = aliased(Order)
    recent = or_(own.ended_at.is_(None), own.ended_at >= since)
    active = select(own.id).where(own.session_id == ChatSession.id, recent).exists()
    forks = select(ChatSession.id).where(
        ChatSession.forked_from_id.is_not(None), or_(ChatSession.created_at >= since, active)
    )
    return with_ancestors(db, set(db.scalars(forks)))


def with_ancestors(db: Session, session_ids: set[str]) -> set[str]:
    """The sessions, and all that they were forked from."""
    found, parents = set(session_ids), _parents(db)
    for each in session_ids:
        parent = parents.get(each)
        while parent is not None and parent not in found:
            found.add(parent)
            parent = parents.get(parent)
    return found


def last_works(db: Session, session_ids: Collection[str]) -> set[str]:
    """The orders whose files the next order would start from: of these sessions and their forks, at each place where
    one may continue.
    """
    family = _with_forks(db, session_ids)
    entries = _turns(db, family)
    heads = _with_head(db, {str(each.order_id) for each in entries.values()})
    ends = set(entries) - _continued(entries)
    for some in chunks(family):
        ends |= set(db.scalars(select(ChatSession.leaf_id).where(ChatSession.id.in_(some), ChatSession.leaf_id != "")))
    found: set[str] = set()
    for end in ends:
        place: str | None = end
        while place is not None and place in entries and entries[place].order_id not in heads:
            place = entries[place].parent_id
        if place is not None and place in entries:
            found.add(str(entries[place].order_id))
    return found


def _undecided_races() -> Select[str]:
    candidate = and_(Order.status == OrderStatus.SUCCEEDED, Order.head_commit.is_not(None))
    may_win = select(Order.id).where(Order.group_id == OrderGroup.id, candidate).exists()
    return select(OrderGroup.id).where(OrderGroup.kind == "race", OrderGroup.winner_id.is_(None), may_win)


def _unfinished_batches() -> Select[str]:
    waiting = select(BatchRow.number).where(BatchRow.batch_id == OrderGroup.id, BatchRow.state == "waiting").exists()
    return select(OrderGroup.id).where(OrderGroup.kind == "batch", OrderGroup.canceled_at.is_(None), waiting)


def _built_on(db: Session, live: ColumnElement[bool]) -> set[str]:
    """The sessions of the orders that these name: those that they start after, and the one whose work they push."""
    found: set[str] = set()
    rows = db.execute(select(Order.after, Order.asked).where(live))
    named = {each for after, asked in rows for each in _named(after, asked)}
    known: set[str] = set()
    while named:
        known |= named
        further: set[str] = set()
        for some in chunks(named):
            of_these = select(Order.session_id, Order.after, Order.asked).where(Order.id.in_(some))
            for session_id, after, asked in db.execute(of_these):
                found.add(session_id)
                further |= set(_named(after, asked))
        named = further - known
    return found


def _named(after: Sequence[str], asked: Mapping[str, object] | None) -> Iterable[str]:
    yield from after
    if asked is not None and isinstance(order := asked.get("order"), str):
        yield order


def _parents(db: Session) -> dict[str, str]:
    forks = select(ChatSession.id, ChatSession.forked_from_id).where(ChatSession.forked_from_id.is_not(None))
    return {str(each): str(parent) for each, parent in db.execute(forks)}


def _with_forks(db: Session, session_ids: Collection[str]) -> set[str]:
    parents, found = _parents(db), set(session_ids)
    while more := {each for each, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _turns(db: Session, session_ids: Collection[str]) -> dict[str, SessionEntry]:
    entries: dict[str, SessionEntry] = {}
    for some in chunks(session_ids):
        turns = select(SessionEntry).where(SessionEntry.session_id.in_(some), SessionEntry.kind == "turn")
        entries |= {each.id: each for each in db.scalars(turns)}
    return entries


def _continued(entries: Mapping[str, SessionEntry]) -> set[str]:
    """The entries with a further turn in the same session."""
    return {
        str(each.parent_id)
        for each in entries.values()
        if each.parent_id in entries and entries[str(each.parent_id)].session_id == each.session_id
    }


def _with_head(db: Session, order_ids: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for some in chunks(order_ids):
        found |= set(db.scalars(select(Order.id).where(Order.id.in_(some), Order.head_commit.is_not(None))))
    return found
