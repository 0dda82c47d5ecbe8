"""Organizations for tests, in addition to `default`."""

from __future__ import annotations

from control_plane.contract.declarations.organizations import OrganizationRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import in_organization
from control_plane.operations import organizations


def add_organization(core: Core, admin: Caller, name: str = "payments", **fields: object) -> Caller:
    """Create an organization; return the everywhere admin as a caller in it."""
    organizations.create(core, admin, OrganizationRequest(name=name, **fields))
    return in_organization(core, admin, name)
