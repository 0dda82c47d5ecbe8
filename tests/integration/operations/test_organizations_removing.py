"""Removing organizations: what goes with them, what stays, and when it is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from sqlalchemy import func, inspect, select

from control_plane.core import Caller, Core
from control_plane.db.access import JoinToken
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.metadata import METADATA
from control_plane.db.runs import Blob
from control_plane.db.teams import Task
from control_plane.declarations.organizations import OrganizationRequest
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.documents.orders import SubmitRequest
from control_plane.operations import organizations
from control_plane.operations.access import tokens
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from shared.blobs import digest
from shared.errors import Conflict, Unauthenticated
from shared.names import new_id
from shared.states import OrderStatus, TaskStatus
from tests.support.made import later, make_drone, make_project, run_of, start_run, submit
from tests.support.organizations import add_organization
from tests.support.team_rows import add_agent, add_task, play, task_of


def rows_of(core: Core, organization_id: str) -> dict[str, int]:
    """How many rows of each table carry the id."""
    owned = [table for table in METADATA.sorted_tables if "organization_id" in table.columns]
    with core.database.read() as db:
        counts = {
            table.name: db.scalar(
                select(func.count()).select_from(table).where(table.c.organization_id == organization_id)
            )
            for table in owned
        }
    return {name: count for name, count in counts.items() if count}


def busy(core: Core, caller: Caller) -> str:
    """An organization with something in every corner; returns its task, which is open and the user's."""
    make_project(core, caller)
    make_drone(core, caller, beat={"abilities": ["teams"]})
    agent = add_agent(core, caller, "lead")
    add_agent(core, caller, "coder", boss="lead")
    task = add_task(core, caller, agent)
    play(core, task, "Look at this. @user")
    tokens.create_api_token(core, caller, ApiTokenRequest(role="operator"))
    tokens.create_join_token(core, caller, JoinTokenRequest())
    tokens.create_login_link(core, caller)
    return task


@pytest.mark.dialects
def test_removing_an_organization_leaves_no_row_of_it_and_touches_no_other(core: Core, admin: Caller) -> None:
    caller, other = add_organization(core, admin), add_organization(core, admin, "other")
    busy(core, caller)
    busy(core, other)
    own, shared = digest(b"own"), digest(b"shared")
    keep(core, caller, b"own", b"shared")
    keep(core, other, b"shared")
    before = rows_of(core, other.organization_id)
    bearer = str(tokens.create_api_token(core, caller, ApiTokenRequest(role="admin")).token)
    later(core, days=400)
    removed = organizations.remove(core, admin, "payments")
    assert (core.blobs.has(own), core.blobs.has(shared)) == (False, True)
    assert rows_of(core, caller.organization_id) == {}
    assert rows_of(core, other.organization_id) == before
    assert [each.name for each in organizations.list_(core, admin)] == ["default", "other"]
    assert removed.warnings == [
        "2 agents were deleted",
        "1 task was deleted with its comments",
        "1 order was deleted with its runs",
        "1 project was deleted",
        "2 API tokens no longer work",
        "1 drone was removed",
    ]
    with pytest.raises(Unauthenticated):
        tokens.authenticate(core, bearer)
    assert organizations.create(core, admin, OrganizationRequest(name="payments")).acronym == "PAYM"


def test_an_organization_with_a_task_in_progress_is_not_removed(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, caller)
    order = submit(core, caller)
    with pytest.raises(Conflict) as unfinished:
        organizations.remove(core, admin, "payments")
    assert (unfinished.value.code, order.id in unfinished.value.what) == ("E-ORGANIZATION-BUSY", True)
    task = add_task(core, caller, add_agent(core, caller, "lead"))
    with pytest.raises(Conflict) as refusal:
        organizations.remove(core, admin, "payments")
    assert (refusal.value.code, task in refusal.value.what) == ("E-ORGANIZATION-BUSY", True)
    assert task_of(core, task).status == TaskStatus.IN_PROGRESS
    assert reading.show_order(core, caller, order.id).status == OrderStatus.QUEUED
    with pytest.raises(Conflict) as always:
        organizations.remove(core, admin, "default")
    assert always.value.code == "E-ORGANIZATION-DEFAULT"


def keep(core: Core, caller: Caller, *contents: bytes) -> None:
    """Store these files as if the organization's only run had."""
    order = reading.list_orders(core, caller)[0]
    run_id = run_of(core, order.id)
    for content in contents:
        core.blobs.store(digest(content), BytesIO(content))
        with core.database.write() as db:
            values = {"run_id": run_id, "sha256": digest(content), "size": len(content)}
            db.add(Blob(organization_id=caller.organization_id, created_at=core.clock.now(), **values))


def test_what_a_removed_organizations_drone_did_for_others_stays(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, admin)
    make_drone(core, caller, "anna", serves=["*"])
    order = submit(core, admin)
    start_run(core, order.id)
    serving = make_drone(core, admin, "mila", draining=True, serves=[caller.organization_id])
    tokens.create_join_token(core, admin, JoinTokenRequest(serves=["payments"]))
    organizations.remove(core, admin, "payments")
    with core.database.read() as db:
        assert db.get_one(Drone, serving.drone_id).serves == []
        assert db.scalars(select(JoinToken.serves)).all() == [[]]
    shown = reading.show_order(core, admin, order.id)
    assert (shown.status, [run.drone for run in shown.runs], shown.runs[0].status) == ("queued", ["anna"], "lost")
    assert [each.name for each in managing.list_drones(core, admin)] == ["mila"]
    assert [each.id for each in reading.list_orders(core, admin, drone="anna")] == []


def test_every_row_that_belongs_to_an_organization_can_be_found_by_its_id(core: Core) -> None:
    of_the_installation = {"alembic_version", "counters", "key_pairs", "organizations", "owners", "push_keys", "users"}
    of_a_budget = {"budget_periods"}
    outliving = {"audit_heads", "audit_keys", "audit_records", "audit_seals"}
    with core.database.read() as db:
        tables = set(inspect(db.connection()).get_table_names())
    owned = {table.name for table in METADATA.sorted_tables if "organization_id" in table.columns}
    assert tables - owned == of_the_installation | of_a_budget | outliving


@pytest.mark.dialects
def test_of_a_removal_and_an_order_that_comes_in_at_once_one_wins(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, caller)

    def order(_: int) -> str:
        try:
            return reading.submit(core, caller, SubmitRequest(prompt="x", project="web"), new_id()).status
        except Exception as error:  # noqa: BLE001 - whichever way it is told that the organization is gone
            return type(error).__name__

    def remove() -> str:
        try:
            return organizations.remove(core, admin, "payments").name
        except Conflict as error:
            return error.code

    with ThreadPoolExecutor(5) as pool:
        answers = pool.map(order, range(4))
        removal = pool.submit(remove).result()
    submitted = "queued" in list(answers)
    with core.database.read() as db:
        there = db.scalar(select(Organization.id).where(Organization.name == "payments")) is not None
        left = db.scalar(select(func.count()).select_from(Task)) or 0
    assert (removal == "E-ORGANIZATION-BUSY") is there
    assert submitted <= there
    assert left == 0
