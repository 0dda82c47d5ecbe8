"""Organizations: the isolated units. `default` always exists."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Caller, Core
from control_plane.db.models import Counter, Organization
from control_plane.operations.checking import unknown

DEFAULT = "default"
ORDERS = "orders"
"""The counter that numbers orders."""


def find_organization(db: Session, name: str) -> Organization:
    """The organization of this name. Raises NotFound."""
    row = db.scalar(select(Organization).where(Organization.name == name))
    if row is None:
        raise unknown("organization", name, db.scalars(select(Organization.name)), "fleet organization ls")
    return row


def system_caller(core: Core, organization: str = DEFAULT) -> Caller:
    """The control plane itself, acting in an organization with every right."""
    with core.database.read() as db:
        row = find_organization(db, organization)
        return Caller(organization_id=row.id, organization=row.name, role="admin", user="system")


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
