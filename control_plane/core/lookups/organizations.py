"""Organizations: found by name, and locked for a change."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import shown, unknown
from control_plane.core import Caller, Core
from control_plane.db.installation import Organization
from shared.errors import NotFound

DEFAULT = "default"


def find_organization(db: Session, name: str) -> Organization:
    """The organization with this name, for callers who may see all. Raises NotFound with similar names."""
    row = db.scalar(select(Organization).where(Organization.name == name))
    if row is None:
        raise unknown("organization", name, db.scalars(select(Organization.name)), "fleet organization ls")
    return row


def in_organization(core: Core, caller: Caller, name: str) -> Caller:
    """The caller, acting in the organization of this name: with the same role.

    Raises NotFound if they may not see it, with the same text whether it exists or not (S-004).
    """
    if name == caller.organization:
        return caller
    if not caller.everywhere:
        raise NotFound(
            f"organization {shown(name)} not found for this token",
            code="E-ORGANIZATION-404",
            why=f"the token belongs to {caller.organization!r}",
            next=f"use --org {caller.organization}, or a token of the other organization",
        )
    with core.database.read() as db:
        row = find_organization(db, name)
    return replace(caller, organization_id=row.id, organization=row.name)


def locked_organization(db: Session, organization_id: str) -> Organization:
    """The organization, with its row locked until the transaction ends. Raises NotFound if it was removed."""
    db.flush()
    # Not FOR UPDATE, which waits for every transaction that has written a row of the organization, because each such
    # row references this one: two of these transactions would wait for each other.
    row = db.get(Organization, organization_id, with_for_update={"key_share": True}, populate_existing=True)
    if row is None:
        raise NotFound("this organization was removed", code="E-ORGANIZATION-404", next="fleet organization ls")
    return row


def system_caller(core: Core, organization: str = DEFAULT) -> Caller:
    """The control plane itself, acting in an organization with all rights."""
    with core.database.read() as db:
        row = find_organization(db, organization)
        return Caller(row.id, row.name, role="admin", user="system", everywhere=True)
