"""Create, edit, pause and resume organizations."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import organizations as declared
from control_plane.contract.declarations.organizations import (
    OrganizationDocument,
    OrganizationEdit,
    OrganizationRequest,
)
from control_plane.contract.validation.checks import check_organization, check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import in_organization, locked_organization
from control_plane.core.lookups.projects import find_project
from control_plane.db.installation import Organization
from control_plane.operations.gateway import performs
from control_plane.operations.organizations.acronyms import next_acronym
from control_plane.operations.organizations.reading import document_of
from control_plane.operations.run_settings import edit_run_settings
from control_plane.orders.reviewers import reviewer_id_of
from control_plane.teams.claiming import claim_tasks
from shared.errors import Conflict, Invalid, NotFound
from shared.names import new_id

MAX_DESCRIPTION = 10_000
"""Maximum characters. Every agent of the organization reads the description in every turn."""
_TRIES = 5
"""Retries if another transaction took the acronym first."""


@performs(declared.ADD)
def create(core: Core, _caller: Caller, request: OrganizationRequest) -> OrganizationDocument:
    """Create an organization. For admins everywhere.

    Raises Conflict for a name that is taken, Invalid for an invalid one (S-001, S-002).
    """
    check_organization(request.name)
    check_text("the description", request.description, limit=MAX_DESCRIPTION, empty=True)
    if request.project is not None:
        raise NotFound(
            f"project {shown(request.project)} not found: a new organization has no projects",
            code="E-PROJECT-404",
            next=f"create it without a project, then: fleet project add … --org {request.name}",
        )
    if request.reviewer is not None:
        raise NotFound(
            f"provider {shown(request.reviewer)} not found: a new organization has no providers",
            code="E-PROVIDER-404",
            next=f"create it without a reviewer, then: fleet provider add … --org {request.name}",
        )
    for _ in range(_TRIES):
        try:
            return core.database.transact(lambda db: document_of(db, create_within(db, core, request)))
        except IntegrityError:
            # Another transaction took the name or the acronym after the check: retry.
            continue
    return core.database.transact(lambda db: document_of(db, create_within(db, core, request)))


def create_within(db: Session, core: Core, request: OrganizationRequest) -> Organization:
    """Write a new organization in the caller's transaction. The request must have been validated.

    Raises Conflict for a name that is taken, IntegrityError if a concurrent transaction took the name or the acronym.
    """
    if db.scalar(select(Organization.id).where(Organization.name == request.name)):
        raise Conflict(
            f"organization {shown(request.name)} already exists",
            code="E-ORGANIZATION-NAME",
            next=f"fleet organization show {request.name}",
        )
    row = Organization(
        id=new_id(),
        name=request.name,
        description=request.description,
        acronym=next_acronym(db, request.name),
        concurrency=request.concurrency,
        max_hand_offs=request.max_hand_offs,
        limits=request.limits,
        thinking=request.thinking,
        created_at=core.clock.now(),
    )
    db.add(row)
    db.flush()
    return row


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: OrganizationEdit) -> OrganizationDocument:
    """Change the fields that are set, at least one; null removes the project (S-005). For its admins.

    Tasks that a higher limit allows to start have started when this returns.
    """
    caller = in_organization(core, caller, name)
    if not changes.model_fields_set:
        raise Invalid(
            "no changes given",
            code="E-NOTHING",
            why="at least one field is required",
            next=f"fleet organization edit {name} --help",
        )
    if changes.description is not None:
        check_text("the description", changes.description, limit=MAX_DESCRIPTION, empty=True)

    def change(db: Session, row: Organization) -> None:
        if "project" in changes.model_fields_set:
            slug = changes.project
            row.project_id = find_project(db, row.id, slug).id if slug is not None else None
        if "reviewer" in changes.model_fields_set:
            row.reviewer_id = reviewer_id_of(db, row.id, changes.reviewer)
        for field in ("description", "concurrency", "max_hand_offs"):
            value = getattr(changes, field)
            if value is not None:
                setattr(row, field, value)
        edit_run_settings(row, changes)

    return _change(core, caller, change)


@performs(declared.PAUSE)
def pause(core: Core, caller: Caller, name: str) -> OrganizationDocument:
    """Start no more of the organization's tasks; those in progress continue. For operators. Idempotent."""
    caller = in_organization(core, caller, name)

    def change(_db: Session, row: Organization) -> None:
        row.paused_at = row.paused_at or core.clock.now()

    return _change(core, caller, change)


@performs(declared.RESUME)
def resume(core: Core, caller: Caller, name: str) -> OrganizationDocument:
    """Start the organization's tasks again; all that can start have started when this returns. For operators."""
    caller = in_organization(core, caller, name)

    def change(_db: Session, row: Organization) -> None:
        row.paused_at = None

    return _change(core, caller, change)


def _change(core: Core, caller: Caller, change: Callable[[Session, Organization], None]) -> OrganizationDocument:
    """Change the locked row, start the tasks that can then start, and announce their orders."""

    def work(db: Session) -> tuple[OrganizationDocument, list[str]]:
        row = locked_organization(db, caller.organization_id)
        change(db, row)
        db.flush()
        written = claim_tasks(db, core, row.id)
        return document_of(db, row), written

    document, written = core.database.transact(work)
    for order_id in written:
        core.broker.changed(order_id)
    return document
