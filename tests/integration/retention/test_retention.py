"""What the retention removes, each kind after its time, and what it never removes."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, select

from control_plane.core import Caller, Core
from control_plane.db.base import Row
from control_plane.db.batches import BatchRow
from control_plane.db.drones import RawEvent
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.db.runs import Blob, Run, Step
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.db.teams import Task
from control_plane.declarations.task_documents import TaskRequest
from control_plane.documents.orders import ResumeRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.orders.reading import patch_of
from control_plane.operations.orders.retrying import resume
from control_plane.operations.retention import keeping, removing
from control_plane.operations.tasks import creating
from control_plane.supervisor.cleaning import clean
from shared.code_hosts import CodeHostReading
from tests.support.clocks import HandClock
from tests.support.connected import connect
from tests.support.database import CoreFactory
from tests.support.kept import KeptFleet, kept_fleet
from tests.support.turns import CANCELED, FAILED, order_as_sent


@pytest.fixture
def fleet(core_factory: CoreFactory, sqlite_url: str, clock: HandClock) -> KeptFleet:
    core = core_factory(sqlite_url, clock=clock)
    return kept_fleet(core, system_caller(core), clock)


@pytest.fixture
def any_fleet(core: Core, admin: Caller, clock: HandClock) -> KeptFleet:
    """Once on each kind of database."""
    return kept_fleet(core, admin, clock)


def test_logs_go_after_90_days_work_after_180_and_steps_after_a_year(any_fleet: KeptFleet) -> None:
    fleet = any_fleet
    order = fleet.play(pushed=True, to=FAILED)
    fleet.pass_days(89)
    assert (fleet.run(), fleet.show(order).removed) == ({}, None)
    fleet.pass_days(2)
    assert fleet.run() == {"logs": (1, len(f"log of {order}"))}
    fleet.pass_days(90)
    assert fleet.run() == {"work": (2, len(f"patch of {order}bundle of {order}"))}
    assert "logs, patch and bundle" in str(fleet.show(order).removed)
    fleet.pass_days(185)
    clean(fleet.core)
    shown = fleet.show(order)
    assert "steps, patch and bundle" in str(shown.removed)
    assert (shown.steps, shown.prompt) == ([], "mend it")
    assert (fleet.rows(Step), fleet.rows(Blob), list(fleet.core.blobs.files())) == (0, 0, [])
    assert resume(fleet.core, fleet.admin, order, ResumeRequest()).status == "assigned"


def test_a_dry_run_says_what_a_run_removes_and_removes_nothing(any_fleet: KeptFleet) -> None:
    fleet = any_fleet
    for number in range(3):
        fleet.play(f"number {number}", pushed=True, log=b"the same in all", work=b"x" if number else None)
    fleet.pass_days(400)
    expected = fleet.run(dry=True)
    assert (fleet.run(dry=True), fleet.missing_files()) == (expected, [])
    assert fleet.run() == expected
    assert expected["logs"] == (3, len("the same in all"))
    assert fleet.run() == fleet.run(dry=True) == {}


def test_more_steps_than_one_transaction_takes_are_all_removed(
    fleet: KeptFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removing, "AT_ONCE", 2)
    for _ in range(3):
        fleet.play(pushed=True)
    fleet.pass_days(400)
    assert fleet.run(dry=True) == fleet.run()
    assert (fleet.rows(Step), fleet.rows(Blob)) == (0, 0)


def test_the_last_work_of_a_session_is_kept_until_it_is_pushed(fleet: KeptFleet) -> None:
    first = fleet.play("first")
    session = fleet.session(first)
    second = fleet.play("second", session)
    fleet.play("third", session, work=None)
    fleet.pass_days(1000)
    fleet.run()
    assert fleet.show(first).removed == "Its steps, patch and bundle are no longer stored."
    assert fleet.show(second).removed == "Its steps are no longer stored."
    base = order_as_sent(fleet.core, fleet.order("go on", session)).base
    assert (base.commit, fleet.core.blobs.has(str(base.bundle))) == ("c" * 40, True)
    fleet.leave(Order, second, pushed=True)
    assert fleet.missing_files() == []


def test_an_order_that_can_be_resumed_is_kept_whole(
    core_factory: CoreFactory, sqlite_url: str, clock: HandClock
) -> None:
    core = core_factory(sqlite_url, clock=clock, keep_logs_days=1, keep_work_days=1, keep_steps_days=1)
    fleet = kept_fleet(core, system_caller(core), clock)
    fleet.play(to=FAILED, pushed=True)
    fleet.play(to=CANCELED, pushed=True)
    fleet.pass_days(6)
    assert fleet.run() == {}
    fleet.pass_days(2)
    assert list(fleet.run()) == ["steps", "logs", "work"]


def test_above_the_limit_of_bytes_the_oldest_go_first_and_what_is_needed_stays(
    core_factory: CoreFactory, database_url: str, clock: HandClock
) -> None:
    core = core_factory(database_url, clock=clock, blob_limit_mb=1)
    fleet = kept_fleet(core, system_caller(core), clock)
    logs = [bytes([number]) * 400_000 for number in range(4)]
    orders = []
    for log in logs:
        orders.append(fleet.play(log=log))
        fleet.pass_days(1)
    fleet.pass_days(2)
    assert fleet.run() == {}, "too young"
    fleet.pass_days(6)
    expected = fleet.run(dry=True)
    assert (expected, fleet.run()) == ({"logs": (2, 800_000)}, expected)
    assert [fleet.show(each).removed is None for each in orders] == [False, False, True, True]
    assert fleet.run() == {}


def test_a_service_that_cost_nothing_goes_with_all_its_rows_and_one_that_cost_something_stays(
    any_fleet: KeptFleet,
) -> None:
    fleet = any_fleet
    free, paid = (fleet.play(each, pushed=True) for each in ("free", "paid"))
    for each in (free, paid):
        fleet.leave(Order, each, purpose="title")
    with fleet.core.database.write() as db:
        db.query(Run).filter(Run.order_id == paid).update({"cost_usd": 0.01})
    fleet.pass_days(31)
    expected = fleet.run(dry=True)
    assert (expected["services"][0], fleet.run()) == (1, expected)
    tables: list[type[Row]] = [Order, Turn, Dispatch, Run, ChatSession, SessionEntry]
    assert [fleet.rows(table) for table in tables] == [1] * 6
    assert fleet.show(paid).removed is None


def test_raw_events_go_after_30_days(fleet: KeptFleet) -> None:
    with fleet.core.database.write() as db:
        event = {"drone_id": fleet.drone.drone_id, "entry_id": "1-0", "fields": {"e": "x"}, "error": "unreadable"}
        db.add(RawEvent(organization_id=fleet.admin.organization_id, at=fleet.core.clock.now(), **event))
    fleet.pass_days(31)
    assert fleet.run(dry=True) == fleet.run() == {"raw events": (1, len('{"e": "x"}'))}


def test_without_limit_everything_is_kept(core_factory: CoreFactory, sqlite_url: str, clock: HandClock) -> None:
    kinds = ("steps", "logs", "work", "services", "readings", "raw_events")
    core = core_factory(sqlite_url, clock=clock, **{f"keep_{kind}_days": "unlimited" for kind in kinds})
    fleet = kept_fleet(core, system_caller(core), clock)
    fleet.play(pushed=True)
    fleet.pass_days(10_000)
    assert fleet.run() == {}
    assert {each.kept for each in keeping.show(core, fleet.admin)} == {"unlimited", "365 days"}


def test_what_is_held_is_counted_for_each_kind(any_fleet: KeptFleet) -> None:
    fleet = any_fleet
    order = fleet.play(log=b"12345")
    fleet.play(log=b"12345")
    held = {each.kind: each for each in keeping.show(fleet.core, fleet.admin)}
    assert (held["logs"].rows, held["logs"].bytes, held["logs"].kept) == (2, 5, "90 days")
    assert (held["steps"].rows, held["steps"].setting) == (10, "FLEET_KEEP_STEPS_DAYS")
    assert (held["work"].rows, held["work"].oldest) == (4, fleet.show(order).created_at)
    assert (held["all blobs"].rows, held["all blobs"].kept) == (5, "unlimited")


def test_a_file_that_another_row_names_stays_and_one_that_no_row_names_goes_after_a_week(any_fleet: KeptFleet) -> None:
    fleet = any_fleet
    fleet.play(work=b"the same", pushed=True)
    fleet.pass_days(200)
    young = fleet.play(work=b"the same", pushed=True)
    assert fleet.run()["work"] == (2, 0)
    assert (patch_of(fleet.core, fleet.admin, young), fleet.missing_files()) == (b"the same", [])
    with fleet.core.database.write() as db:
        db.execute(delete(Blob))
    assert fleet.run() == {}
    fleet.pass_days(8)
    assert fleet.run()["unnamed files"][0] == 3
    assert list(fleet.core.blobs.files()) == []


def test_a_batch_is_kept_whole_while_rows_of_it_wait(fleet: KeptFleet) -> None:
    batch, owner = "b" * 12, fleet.admin.organization_id
    order = fleet.play(pushed=True)
    with fleet.core.database.write() as db:
        now = fleet.core.clock.now()
        db.add(OrderGroup(id=batch, organization_id=owner, kind="batch", name="x", created_at=now))
        db.flush()
        row = {"number": 2, "key": "2", "digest": "d" * 64, "request": {}, "state": "waiting"}
        db.add(BatchRow(batch_id=batch, organization_id=owner, **row))
    fleet.leave(Order, order, group_id=batch)
    fleet.pass_days(1000)
    assert fleet.run() == {}
    fleet.leave(OrderGroup, batch, canceled_at=fleet.core.clock.now())
    assert list(fleet.run()) == ["steps", "logs", "work"]


def test_the_orders_of_an_open_task_are_kept_whole(fleet: KeptFleet) -> None:
    order = fleet.play(pushed=True)
    task = open_task(fleet)
    fleet.leave(ChatSession, fleet.session(order), task_id=task)
    fleet.pass_days(1000)
    assert fleet.run() == {}
    fleet.leave(Task, task, status="done")
    assert list(fleet.run()) == ["steps", "logs", "work"]


def open_task(fleet: KeptFleet) -> str:
    request = TaskRequest(title="mend it", assignee="user", project="web")
    return creating.create(fleet.core, fleet.admin, request).id


def test_readings_of_code_hosts_go_after_a_week_and_the_next_one_is_made(
    core: Core, admin: Caller, clock: HandClock
) -> None:
    connected = connect(core, admin, clock)
    for _ in range(3):
        connected.reads()
    clean(core)
    assert readings(core) == 3
    clock.sleep(8 * 86400)
    due = connected.asked()
    assert due is not None
    clean(core)
    assert (readings(core), connected.asked() == due) == (1, False)
    connected.finish(due[0].id, response=CodeHostReading().model_dump_json())
    connected.reads()
    assert (readings(core), connected.link.last_error) == (2, "")


def readings(core: Core) -> int:
    with core.database.read() as db:
        return len(db.scalars(select(Order).where(Order.purpose == "code_host")).all())
