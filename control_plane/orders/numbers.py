"""The numbers of orders, in the order of their commits."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.db.installation import Counter

ORDERS = "orders"
"""The counter that numbers orders."""


def next_number(db: Session) -> int:
    """The next number; no other transaction gets one before this one ends, so that numbers follow commits.

    A database sequence could hand out 8 before 7 is committed, and a session's orders run by number.
    """
    row = _locked(db)
    row.value += 1
    db.flush()
    return row.value


def lock_numbers(db: Session) -> None:
    """Prevent other transactions from creating an order until this one ends."""
    _locked(db)


def _locked(db: Session) -> Counter:
    row = db.get(Counter, ORDERS, with_for_update=True, populate_existing=True)
    if row is None:
        raise RuntimeError(f"the migrations did not create the counter {ORDERS}")
    return row
