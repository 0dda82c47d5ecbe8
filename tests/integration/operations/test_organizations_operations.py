"""Organizations: making, showing, changing, pausing and removing them, and what goes and stays with one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from sqlalchemy import func, inspect, select, update

from control_plane.contract.declarations.code_hosts import CodeHostRequest
from control_plane.contract.declarations.organizations import OrganizationEdit, OrganizationRequest
from control_plane.contract.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.core import Caller, Core
from control_plane.core.blob_store import DirectoryStore
from control_plane.db.access import JoinToken
from control_plane.db.audit import AuditRecord
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.metadata import METADATA
from control_plane.db.runs import Blob, Run
from control_plane.db.teams import Task
from control_plane.operations import organizations
from control_plane.operations.access import tokens
from control_plane.operations.code_hosts import connections as code_hosts
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from control_plane.operations.orders.canceling import cancel
from shared.blobs import digest
from shared.errors import FleetFault
from shared.states import TaskStatus
from tests.support.made import later, make_drone, make_project, run_of, start_run, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of
from tests.support.team_rows import add_agent, add_task, play, task_of


def create(core: Core, admin: Caller, name: str) -> str:
    """Create an organization; its acronym."""
    return organizations.create(core, admin, OrganizationRequest(name=name)).acronym


def remove(core: Core, admin: Caller, name: str = "payments") -> str:
    """The code with which its removal is refused, or nothing."""
    return code_of(lambda: organizations.remove(core, admin, name))


def test_a_new_organization_has_its_fields_an_acronym_and_nothing_in_it(core: Core, admin: Caller) -> None:
    made = organizations.create(core, admin, OrganizationRequest(name="payments", description="Card payments"))
    assert (made.name, made.description, made.acronym, made.paused) == ("payments", "Card payments", "PAYM", False)
    assert (made.concurrency, made.max_hand_offs, made.project, made.agent_count) == (4, 20, None, 0)
    assert made.tasks == {"open": 0, "in_progress": 0, "failed": 0, "done": 0, "canceled": 0}
    assert (made.totals.runs, made.agents, made.warnings) == (0, None, [])


@pytest.mark.dialects
def test_a_name_that_is_taken_is_a_conflict_also_for_default(core: Core, admin: Caller) -> None:
    """Also at once, and each organization gets an acronym of its own."""
    assert code_of(lambda: create(core, admin, "default")) == "E-ORGANIZATION-NAME"
    with ThreadPoolExecutor(8) as pool:
        acronyms = list(pool.map(lambda name: create(core, admin, name), ["pay_a", "pay_b", "pay_c", "pay_d"]))
        codes = list(pool.map(lambda _: code_of(lambda: create(core, admin, "payments")), range(4)))
    assert len({*acronyms}) == 4
    assert sorted(codes) == ["", *["E-ORGANIZATION-NAME"] * 3]


def test_an_organization_is_shown_with_its_tree_of_agents_its_tasks_and_what_it_cost(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    busy(core, caller)
    with core.database.write() as db:
        db.execute(update(Run).values(input_tokens=7, output_tokens=3, cost_usd=0.5))
    shown = organizations.show(core, admin, "payments")
    assert shown.agents is not None
    assert [(node.name, [each.name for each in node.reports]) for node in shown.agents] == [("lead", ["coder"])]
    assert (shown.agent_count, shown.tasks["open"], shown.totals.runs) == (2, 1, 1)
    assert (shown.totals.input_tokens, shown.totals.output_tokens, shown.totals.cost_usd) == (7, 3, 0.5)
    (listed,) = [each for each in organizations.list_(core, admin) if each.name == "payments"]
    assert (listed.agent_count, listed.agents) == (2, None)


def test_each_organization_numbers_its_own_tasks(core: Core, admin: Caller) -> None:
    callers = add_organization(core, admin), add_organization(core, admin, "billing_payments")
    for caller in callers:
        make_project(core, caller)
    found = [add_task(core, callers[number], None, claim=False) for number in (0, 1, 0)]
    assert found == ["PAYM-0001", "BPPP-0001", "PAYM-0002"]


def test_only_the_fields_that_are_given_change_and_null_takes_the_project_away(core: Core, admin: Caller) -> None:
    """At least one has to be given, never the name, and no project of another organization."""
    caller = add_organization(core, admin, description="Card payments")
    make_project(core, caller)
    make_project(core, admin, "shop")
    changed = organizations.edit(core, admin, "payments", OrganizationEdit(project="web", concurrency=0))
    assert (changed.project, changed.concurrency, changed.description) == ("web", 0, "Card payments")
    without = organizations.edit(core, admin, "payments", OrganizationEdit(project=None, max_hand_offs=3))
    assert (without.project, without.concurrency, without.max_hand_offs) == (None, 0, 3)
    for act, code in (
        (lambda: organizations.edit(core, admin, "payments", OrganizationEdit()), "E-NOTHING"),
        (lambda: organizations.edit(core, admin, "payments", OrganizationEdit(project="shop")), "E-PROJECT-404"),
        (lambda: add_organization(core, admin, "other", project="web"), "E-PROJECT-404"),
    ):
        assert code_of(act) == code
    assert "name" not in OrganizationEdit.model_fields


def test_a_higher_limit_lets_tasks_begin_at_once_and_none_begins_while_paused(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, caller)
    agent = add_agent(core, caller, "lead")
    running = add_task(core, caller, agent)
    organizations.edit(core, admin, "payments", OrganizationEdit(concurrency=1))
    second = add_task(core, caller, agent)
    organizations.edit(core, admin, "payments", OrganizationEdit(concurrency=2))
    paused = organizations.pause(core, admin, "payments")
    waiting = add_task(core, caller, agent)
    assert (paused.paused, organizations.pause(core, admin, "payments").paused_at) == (True, paused.paused_at)
    assert [task_of(core, each).status for each in (running, second, waiting)] == ["in_progress", "in_progress", "open"]
    organizations.edit(core, admin, "payments", OrganizationEdit(concurrency=3))
    assert organizations.resume(core, admin, "payments").paused is False
    assert task_of(core, waiting).status == "in_progress"


def rows_of(core: Core, organization_id: str) -> dict[str, int]:
    """How many rows of each table carry the id."""
    counts = {}
    with core.database.read() as db:
        for table in METADATA.sorted_tables:
            if "organization_id" in table.columns:
                own = select(func.count()).select_from(table).where(table.c.organization_id == organization_id)
                counts[table.name] = db.scalar(own)
    return {name: count for name, count in counts.items() if count}


def busy(core: Core, caller: Caller, *contents: bytes) -> None:
    """Fill every corner of the organization: its task is open and the user's, and its run stored these files."""
    make_project(core, caller)
    make_drone(core, caller)
    agent = add_agent(core, caller, "lead")
    add_agent(core, caller, "coder", boss="lead")
    order_id = play(core, add_task(core, caller, agent), "Look at this. @user")
    tokens.create_api_token(core, caller, ApiTokenRequest(role="operator"))
    tokens.create_join_token(core, caller, JoinTokenRequest())
    tokens.create_login_link(core, caller)
    for content in contents:
        core.blobs.store(digest(content), BytesIO(content))
        values = {"run_id": run_of(core, order_id), "sha256": digest(content), "size": len(content)}
        with core.database.write() as db:
            db.add(Blob(organization_id=caller.organization_id, created_at=core.clock.now(), **values))


@pytest.mark.dialects
def test_removing_an_organization_leaves_no_row_of_it_and_touches_no_other(core: Core, admin: Caller) -> None:
    caller, other = add_organization(core, admin), add_organization(core, admin, "other")
    busy(core, caller, b"own", b"shared")
    busy(core, other, b"shared")
    before = rows_of(core, other.organization_id)
    bearer = str(tokens.create_api_token(core, caller, ApiTokenRequest(role="admin")).token)
    later(core, days=400)
    removed = organizations.remove(core, admin, "payments")
    assert [core.blobs.has(digest(content)) for content in (b"own", b"shared")] == [False, True]
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
    assert code_of(lambda: tokens.authenticate(core, bearer)) == "E-TOKEN-UNKNOWN"
    assert create(core, admin, "payments") == "PAYM"


def test_an_organization_is_removed_also_if_the_store_does_not_delete_its_files(core: Core, admin: Caller) -> None:
    class RefusingStore(DirectoryStore):
        def remove(self, *_: Any, **__: Any) -> bool:
            raise FleetFault("the bucket refuses", code="E-BLOB-DISK")

    busy(core, add_organization(core, admin), b"own")
    later(core, days=400)
    assert remove(replace(core, blobs=RefusingStore(core.blobs.root)), admin) == ""
    with core.database.read() as db:
        outcomes = db.scalars(select(AuditRecord.outcome).where(AuditRecord.action == "remove_organization")).all()
    assert outcomes == ["changed"]


def test_an_organization_with_a_task_in_progress_is_not_removed(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, caller)
    order = submit(core, caller)
    assert remove(core, admin) == "E-ORGANIZATION-BUSY"
    cancel(core, caller, order.id)
    task = add_task(core, caller, add_agent(core, caller, "lead"))
    assert remove(core, admin) == "E-ORGANIZATION-BUSY"
    assert task_of(core, task).status == TaskStatus.IN_PROGRESS
    assert remove(core, admin, "default") == "E-ORGANIZATION-DEFAULT"


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
    assert (shown.status, [(run.drone, run.status) for run in shown.runs]) == ("queued", [("anna", "lost")])
    assert [each.name for each in managing.list_drones(core, admin)] == ["mila"]
    assert reading.list_orders(core, admin, drone="anna") == []


def test_what_names_a_removed_organizations_drone_elsewhere_still_does(core: Core, admin: Caller) -> None:
    caller = add_organization(core, admin)
    make_project(core, admin)
    drone = make_drone(core, caller, "anna", serves=["*"])
    host = {"name": "nightly", "kind": "github", "project": "web", "repository": "shop/web", "drone": "anna"}
    code_hosts.add(core, admin, CodeHostRequest.model_validate(host))
    organizations.remove(core, admin, "payments")
    with core.database.read() as db:
        assert db.get_one(Drone, drone.drone_id).organization_id == admin.organization_id
    assert code_hosts.show(core, admin, "nightly").drone == "anna"


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

    def order(number: int) -> str:
        try:
            return submit(core, caller, key=str(number)).status
        except Exception as error:  # noqa: BLE001 - whichever way it is told that the organization is gone
            return type(error).__name__

    with ThreadPoolExecutor(5) as pool:
        answers = pool.map(order, range(4))
        removal = pool.submit(remove, core, admin).result()
    submitted = "queued" in list(answers)
    with core.database.read() as db:
        there = db.scalar(select(Organization.id).where(Organization.name == "payments")) is not None
        left = db.scalar(select(func.count()).select_from(Task)) or 0
    assert (removal == "E-ORGANIZATION-BUSY") is there
    assert submitted <= there
    assert left == 0
