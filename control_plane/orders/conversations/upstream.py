"""The work that an order builds on: that of its session, and that of the orders after which it starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.sessions import SessionEntry
from control_plane.orders.conversations.history import last_work, way_of


@dataclass(frozen=True)
class Foundation:
    """The orders whose heads an order starts from."""

    base: Order | None
    """None: it starts from the project's branch, or from a given commit."""
    merged: tuple[Order, ...] = ()
    """Merged into the base, in this order."""

    @property
    def orders(self) -> Iterator[Order]:
        if self.base is not None:
            yield self.base
        yield from self.merged


def foundation_of(db: Session, order: Order, way: Sequence[SessionEntry] | None = None) -> Foundation:
    """What the order builds on. The work of its own session comes first, then that of each order that it starts after.

    `way`: the turns before it, if they are known. An order that left no work of its own stands for what it built on.
    """
    own = last_work(db, way_of(db, order) if way is None else way)
    others = [work for each in order.after if (work := _work_of(db, db.get_one(Order, each))) is not None]
    works = {work.id: work for work in ([own] if own is not None else []) + others}
    if order.wanted_commit is not None and own is None:
        return Foundation(None, tuple(works.values()))
    if not works:
        return Foundation(None)
    base, *merged = works.values()
    return Foundation(base, tuple(merged))


def _work_of(db: Session, order: Order) -> Order | None:
    return order if order.head_commit is not None else foundation_of(db, order).base
