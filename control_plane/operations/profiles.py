"""Profiles: named sets of defaults, which orders name."""

from __future__ import annotations

from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import profiles as declared
from control_plane.contract.declarations.profiles import ProfileDocument, ProfileEdit, ProfileRequest, ProfileSettings
from control_plane.contract.validation.checks import check_labels, check_name, check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.providers import find_provider, find_provider_or_model
from control_plane.db.profiles import Profile
from control_plane.operations.gateway import performs
from control_plane.orders.profiles import find_profile, profiles_of, settings_of
from control_plane.orders.reviewers import NO_REVIEWER
from shared.errors import Conflict
from shared.names import new_id

MAX_DESCRIPTION = 500


@performs(declared.ADD)
def add(core: Core, caller: Caller, request: ProfileRequest) -> ProfileDocument:
    """Create a profile. Raises Conflict for a name that is taken, NotFound for an unknown provider, Invalid."""
    check_profile(request.name, request.description, request)
    row = Profile(
        id=new_id(),
        organization_id=caller.organization_id,
        name=request.name,
        description=request.description,
        settings={},
        created_at=core.clock.now(),
    )
    try:
        with core.database.write() as db:
            _fill(db, row, request, set(ProfileSettings.model_fields))
            db.add(row)
            db.flush()
            return _document(row)
    except IntegrityError as error:
        raise Conflict(
            f"profile {shown(row.name)} already exists",
            code="E-PROFILE-NAME",
            next=f"fleet profile edit {row.name}",
        ) from error


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[ProfileDocument]:
    """All profiles of the organization by name."""
    with core.database.read() as db:
        return [_document(row) for row in db.scalars(profiles_of(caller.organization_id).order_by(Profile.name))]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> ProfileDocument:
    """One profile. Raises NotFound with similar names."""
    with core.database.read() as db:
        return _document(find_profile(db, caller.organization_id, name))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: ProfileEdit) -> ProfileDocument:
    """Change the fields that are set; null makes the profile no longer set a field. Raises as `add`."""

    def work(db: Session) -> ProfileDocument:
        row = find_profile(db, caller.organization_id, name)
        if changes.description is not None:
            row.description = changes.description
        check_profile(row.name, row.description, changes)
        _fill(db, row, changes, changes.model_fields_set & set(ProfileSettings.model_fields))
        db.flush()
        return _document(row)

    return core.database.transact(work)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> ProfileDocument:
    """Remove a profile; orders that were submitted with it keep what they have. Raises NotFound."""

    def work(db: Session) -> ProfileDocument:
        row = find_profile(db, caller.organization_id, name)
        removed = _document(row)
        db.delete(row)
        return removed

    return core.database.transact(work)


def _fill(db: Session, row: Profile, wanted: ProfileSettings, given: set[str]) -> None:
    """Set the given settings. Providers are named here and looked up again for each order."""
    if "provider" in given and wanted.provider is not None:
        find_provider(db, row.organization_id, wanted.provider)
    if wanted.reviewer == NO_REVIEWER:
        # In a profile as in other settings: the word removes the setting.
        wanted = wanted.model_copy(update={"reviewer": None})
    if "reviewer" in given and wanted.reviewer is not None:
        find_provider_or_model(db, row.organization_id, wanted.reviewer)
    changed: dict[str, Any] = {**row.settings, **wanted.model_dump(mode="json", include=given)}
    row.settings = {name: value for name, value in changed.items() if value not in (None, {})}


def check_profile(name: str, description: str, settings: ProfileSettings) -> None:
    """Raise Invalid for what a profile cannot have, apart from the providers that it names."""
    check_name("profile", name)
    check_text("the description", description, limit=MAX_DESCRIPTION, empty=True)
    check_labels(settings.labels or {})


def _document(row: Profile) -> ProfileDocument:
    settings = settings_of(row).model_dump()
    return ProfileDocument(name=row.name, description=row.description, created_at=row.created_at, **settings)
