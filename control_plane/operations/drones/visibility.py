"""The other organizations that a drone serves, and which of them a caller may see."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Caller
from control_plane.core.lookups.drones import EVERY
from control_plane.core.lookups.organizations import find_organization
from control_plane.core.lookups.users import member_emails
from control_plane.db.access import Pool
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch
from control_plane.operations.access.roles import require_everywhere
from control_plane.operations.row_documents import Visibility


def visibility_of(db: Session, caller: Caller) -> Visibility:
    """What the caller may see of drones, in at most four queries."""
    open_runs = select(Dispatch.id).where(
        Dispatch.organization_id == caller.organization_id, Dispatch.closed_at.is_(None)
    )
    runs, members = set(db.scalars(open_runs)), member_emails(db, caller.organization_id)
    own_pools = select(Pool.id, Pool.name).where(Pool.organization_id == caller.organization_id)
    pools = {pool_id: name for pool_id, name in db.execute(own_pools)}
    return Visibility(caller.organization_id, names_known_to(db, caller), runs, members, pools)


def names_known_to(db: Session, caller: Caller) -> dict[str, str]:
    """ID to name of the organizations that the caller may see."""
    if not caller.everywhere:
        return {caller.organization_id: caller.organization}
    return {found: name for found, name in db.execute(select(Organization.id, Organization.name))}


def served_ids(db: Session, caller: Caller, names: Sequence[str]) -> list[str]:
    """The value of `Drone.serves` for these names; `*` means all organizations.

    Raises Forbidden for a caller that may not act everywhere: it would give access to other organizations' work.
    """
    if not names:
        return []
    require_everywhere(caller)
    if EVERY in names:
        return [EVERY]
    return list(dict.fromkeys(find_organization(db, name).id for name in names))
