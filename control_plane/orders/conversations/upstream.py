"""The work that an order builds on: that of its session, and that of the orders after which it starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.sessions import SessionEntry
from control_plane.orders.conversations.history import last_work, way_of


@dataclass(frozen=True)
class Foundation:
    """The orders whose heads an order starts from."""

    base: Order | None
    """None: it starts from `commit`."""
    merged: tuple[Order, ...] = ()
    """Merged into the base, in this order."""
    commit: str | None = None
    """A commit that a user gave; None: the tip of the project's branch, unless there is a base."""

    @property
    def orders(self) -> Iterator[Order]:
        if self.base is not None:
            yield self.base
        yield from self.merged


def foundation_of(db: Session, order: Order, way: Sequence[SessionEntry] | None = None) -> Foundation:
    """What the order builds on. The work of its own session comes first, then that of each order that it starts after.

    `way`: the turns before it, if they are known. An order that left no work of its own stands for what it built on.
    """
    way = way_of(db, order) if way is None else way
    own = last_work(db, way)
    others = [_left_by(db, db.get_one(Order, each)) for each in order.after]
    works = {work.id: work for work in (own, *(each.base for each in others)) if work is not None}
    if own is None and (given := order.wanted_commit or _given_along(db, way)) is not None:
        return Foundation(None, tuple(works.values()), given)
    if not works:
        return Foundation(None, commit=next((each.commit for each in others if each.commit is not None), None))
    base, *merged = works.values()
    return Foundation(base, tuple(merged))


def _left_by(db: Session, order: Order) -> Foundation:
    return Foundation(order) if order.head_commit is not None else foundation_of(db, order)


def _given_along(db: Session, way: Sequence[SessionEntry]) -> str | None:
    """The commit that an earlier turn was given."""
    ids = [entry.order_id for entry in way]
    given = select(Order.wanted_commit).where(Order.id.in_(ids), Order.wanted_commit.is_not(None))
    return db.scalar(given.order_by(Order.number.desc()).limit(1)) if ids else None
