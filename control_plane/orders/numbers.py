"""The numbers of orders, which follow the order of their commits."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.db.installation import Counter

ORDERS = "orders"
"""The counter that numbers orders."""


def next_number(db: Session, counter: str = ORDERS) -> int:
    """The next number; until the transaction ends, nobody else gets one, so that numbers follow commits.

    A sequence of the database would hand out 8 before 7 is committed, and a session's orders run by their numbers.
    """
    row = db.get(Counter, counter, with_for_update=True, populate_existing=True)
    if row is None:
        raise RuntimeError(f"the migrations did not create the counter {counter}")
    row.value += 1
    db.flush()
    return row.value
