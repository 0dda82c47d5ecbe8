"""Remove an organization and all rows that carry its ID (S-006)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, delete, exists, func, not_, or_, select, update
from sqlalchemy.orm import Session

from control_plane.contract.declarations import organizations as declared
from control_plane.contract.declarations.organizations import OrganizationDocument
from control_plane.core import Caller, Core, EndedRun
from control_plane.core.lookups.organizations import DEFAULT, find_organization, in_organization, locked_organization
from control_plane.db.access import ApiToken, JoinToken
from control_plane.db.base import Owned
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.metadata import METADATA
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.runs import Blob
from control_plane.db.spending import Budget, BudgetPeriod
from control_plane.db.teams import Agent, Task
from control_plane.db.users import Member
from control_plane.operations.access.users import remove_former
from control_plane.operations.drones.managing import take_back
from control_plane.operations.gateway import performs
from control_plane.operations.organizations.reading import document_of
from control_plane.orders.lost import announce
from shared.errors import Conflict, FleetFault
from shared.states import ENDED, OrderStatus, TaskStatus
from shared.terminal import logs
from shared.work_order import GIVES_WAY

log = logs.get(__name__)
_JUST_STORED_S = 300
"""A file younger than this may belong to a row that is not yet written."""


@dataclass
class _Removed:
    """The work that remains once the rows are deleted."""

    document: OrganizationDocument
    drones: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    """Orders of other organizations, taken back from its drones."""
    ended: list[EndedRun] = field(default_factory=list)
    blobs: set[tuple[str, bool]] = field(default_factory=set)
    """Names of files that no other organization uses, and whether they are sealed."""


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> OrganizationDocument:
    """Remove an organization with its agents, tasks, comments, orders, runs, tokens and drones. For admins everywhere.

    `warnings` in the answer lists what was deleted. Raises Conflict for `default`, and while a task is in progress or
    an order has not ended (S-006). Orders of other organizations on its drones are requeued.
    """
    caller = in_organization(core, caller, name)
    if caller.organization == DEFAULT:
        raise Conflict(
            f"organization {DEFAULT!r} cannot be removed",
            code="E-ORGANIZATION-DEFAULT",
            why="it is used where no other organization is given",
            next="fleet organization ls",
        )
    removed = core.database.transact(lambda db: _remove(db, core, caller.organization_id))
    _afterwards(core, removed)
    return removed.document


def _remove(db: Session, core: Core, organization_id: str) -> _Removed:
    locked_organization(db, organization_id)
    # Lock the whole row including its key: from here on, no transaction can write a row that belongs to it.
    row = db.get_one(Organization, organization_id, with_for_update=True, populate_existing=True)
    _refuse_unfinished(db, row)
    removed = _Removed(document_of(db, row).model_copy(update={"warnings": _warnings(db, row)}))
    removed.blobs = _only_here(db, row)
    _remove_drones(db, core, row, removed)
    db.flush()
    db.execute(delete(BudgetPeriod).where(BudgetPeriod.budget_id.in_(_own_budgets(row))))
    for table in reversed(METADATA.sorted_tables):
        if "organization_id" in table.columns:
            db.execute(delete(table).where(table.c.organization_id == row.id))
    db.execute(delete(Organization).where(Organization.id == row.id))
    remove_former(db)
    return removed


def _own_budgets(row: Organization) -> Select[str]:
    return select(Budget.id).where(Budget.organization_id == row.id)


def _refuse_unfinished(db: Session, row: Organization) -> None:
    """Raise Conflict while a task is in progress or an order has not ended."""
    at_work = select(Task.id).where(Task.organization_id == row.id, Task.status == TaskStatus.IN_PROGRESS)
    if task := db.scalar(at_work.order_by(Task.number).limit(1)):
        raise Conflict(
            f"organization {row.name} has tasks in progress, for example {task}",
            code="E-ORGANIZATION-BUSY",
            next=f"fleet task cancel {task} --org {row.name}",
        )
    # A check that waits is on no drone, and is deleted with the rest.
    waits = and_(Order.purpose.in_(GIVES_WAY), Order.status == OrderStatus.QUEUED)
    unfinished = select(Order.id).where(Order.organization_id == row.id, Order.status.not_in(ENDED), not_(waits))
    if order := db.scalar(unfinished.order_by(Order.number).limit(1)):
        raise Conflict(
            f"organization {row.name} has unfinished orders, for example {order}",
            code="E-ORGANIZATION-BUSY",
            next=f"fleet cancel {order} --wait --org {row.name}",
        )


def _warnings(db: Session, row: Organization) -> list[str]:
    """What is deleted with the organization, one sentence each."""

    def number(table: type[Owned], *also: ColumnElement[bool]) -> int:
        own = select(func.count()).select_from(table).where(table.organization_id == row.id, *also)
        return db.execute(own).scalar_one()

    counted = (
        (number(Agent), "agent", "was deleted", "were deleted"),
        (number(Task), "task", "was deleted with its comments", "were deleted with their comments"),
        (number(Order), "order", "was deleted with its runs", "were deleted with their runs"),
        (number(Project), "project", "was deleted", "were deleted"),
        (number(Member), "user", "is no longer a member", "are no longer members"),
        (number(ApiToken, ApiToken.revoked_at.is_(None)), "API token", "no longer works", "no longer work"),
        (number(Drone, Drone.removed_at.is_(None)), "drone", "was removed", "were removed"),
    )
    return [f"{n} {what}{'s' if n > 1 else ''} {one if n == 1 else many}" for n, what, one, many in counted if n]


def _only_here(db: Session, row: Organization) -> set[tuple[str, bool]]:
    """The files that only runs of this organization stored."""
    others = select(Blob.sha256, Blob.sealed).where(Blob.organization_id != row.id)
    own = select(Blob.sha256, Blob.sealed).where(Blob.organization_id == row.id)
    return {(name, sealed) for name, sealed in db.execute(own.except_(others))}


def _remove_drones(db: Session, core: Core, row: Organization, removed: _Removed) -> None:
    """Remove its drones. Their work for other organizations stays in those organizations' history."""
    now = core.clock.now()
    drones = db.scalars(select(Drone).where(Drone.organization_id == row.id).order_by(Drone.id).with_for_update()).all()
    for drone in drones:
        if drone.removed_at is None:
            drone.removed_at = now
            order_ids, ended = take_back(db, core, drone, "drone_removed")
            removed.drones.append(drone.id)
            removed.orders += order_ids
            removed.ended += ended
    db.flush()
    _hand_over(db, row)
    _serve_no_more(db, row.id)


def _hand_over(db: Session, row: Organization) -> None:
    """Move drones that other organizations' rows name to `default`, as removed ones: histories keep the names."""
    named = or_(
        *(exists().where(each == Drone.id, each.table.c.organization_id != row.id) for each in _columns_of_drones())
    )
    home = find_organization(db, DEFAULT).id
    moved = select(Drone.id).where(Drone.organization_id == row.id, named)
    drones = db.scalars(moved).all()
    db.execute(update(Drone).where(Drone.id.in_(drones)).values(organization_id=home))


def _columns_of_drones() -> list[Column[Any]]:
    """The foreign keys to drones, of all tables with an organization."""
    tables = [table for table in METADATA.sorted_tables if "organization_id" in table.columns]
    return [key.parent for table in tables for key in table.foreign_keys if key.target_fullname == "drones.id"]


def _serve_no_more(db: Session, organization_id: str) -> None:
    """Remove its ID from the `serves` lists of other organizations' drones and join tokens."""
    for each in (*db.scalars(select(Drone)), *db.scalars(select(JoinToken))):
        if organization_id in each.serves:
            each.serves = [served for served in each.serves if served != organization_id]


def _afterwards(core: Core, removed: _Removed) -> None:
    """Remove its drones from the broker, announce the changes, and delete its files."""
    for drone_id in removed.drones:
        try:
            core.broker.remove_user(drone_id)
        except FleetFault as error:
            # Its bearer token is already invalid, and the supervisor removes user and keys when the broker is back.
            log.warning("drone removed while the broker is unavailable", drone=drone_id, why=error.what)
    announce(core, removed.orders, removed.ended)
    _delete_files(core, removed.blobs)


def _delete_files(core: Core, blobs: Iterable[tuple[str, bool]]) -> None:
    since = core.clock.now() - timedelta(seconds=_JUST_STORED_S)
    try:
        for name, sealed in blobs:
            core.blobs.remove(name, sealed=sealed, stored_before=since)
    except FleetFault as error:
        # The organization is removed. No row names the files any more, and the retention deletes such files.
        log.warning("files of a removed organization could not be deleted yet", why=error.what)
