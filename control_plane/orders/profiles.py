"""The place of a profile among the sources of an order's settings (docs/profiles.md)."""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.orders import OrderRequest
from control_plane.contract.declarations.profiles import ProfileSettings
from control_plane.contract.validation.checks import unknown
from control_plane.db.profiles import Profile

Wanted = TypeVar("Wanted", bound=OrderRequest)


def with_profile(db: Session, organization_id: str, request: Wanted) -> Wanted:
    """The request, in which its profile has filled what it does not set itself.

    What neither sets comes from the session, the agent, the project, the organization and our defaults, as without a
    profile. Labels of the profile do not apply to an order that names its drone. Raises NotFound.
    """
    if request.profile is None:
        return request
    settings = settings_of(find_profile(db, organization_id, request.profile)).model_dump(exclude_none=True)
    if request.drone is not None:
        settings.pop("labels", None)
    unset = [name for name in settings if name not in request.limits and getattr(request, name) in (None, {})]
    return request.model_copy(update={name: settings[name] for name in unset})


def settings_of(row: Profile) -> ProfileSettings:
    """What the profile sets."""
    return ProfileSettings.model_validate(row.settings)


def find_profile(db: Session, organization_id: str, name: str) -> Profile:
    """The profile with this name. Raises NotFound with similar names."""
    row = db.scalar(profiles_of(organization_id).where(Profile.name == name))
    if row is None:
        known = [each.name for each in db.scalars(profiles_of(organization_id))]
        raise unknown("profile", name, known, "fleet profile ls")
    return row


def profiles_of(organization_id: str) -> Select[Profile]:
    return select(Profile).where(Profile.organization_id == organization_id)
