"""Schedules: each time makes one task, whoever looks, and however late."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import psycopg
import pytest
from sqlalchemy import event, select, update
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from control_plane.automation.schedules import make_due
from control_plane.broker.broker import WAKE, Broker
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.schedules import ScheduleDocument, ScheduleEdit, ScheduleRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.automation import Schedule
from control_plane.db.teams import Task
from control_plane.operations import agents, projects
from control_plane.operations.automation import schedules
from shared.errors import FleetError
from tests.support import wait_until
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import later, make_project
from tests.support.refusals import code_of

TASK = {"title": "Tidy up {{date}}", "assignee": "user"}


def add(core: Core, caller: Caller, name: str = "nightly", **fields: Any) -> ScheduleDocument:
    values = {"name": name, "cron": "0 * * * *", "task": TASK}
    return schedules.create(core, caller, ScheduleRequest.model_validate({**values, **fields}))


def titles(core: Core) -> list[str]:
    """The titles of all tasks, in the order in which they were made."""
    with core.database.read() as db:
        return list(db.scalars(select(Task.title).order_by(Task.number)))


@pytest.fixture
def core(core: Core) -> Core:
    """With a project."""
    make_project(core, system_caller(core))
    return core


def test_a_schedule_makes_a_task_at_its_time_and_waits_for_the_next_also_if_the_clock_is_set_back(
    core: Core, admin: Caller, clock: HandClock
) -> None:
    add(core, admin)
    make_due(core)
    assert titles(core) == []
    later(core, hours=1, seconds=2)
    make_due(core)
    make_due(core)
    shown = schedules.show(core, admin, "nightly")
    assert titles(core) == ["Tidy up 2026-11-21"]
    assert (shown.next_at, shown.last_task) == (datetime(2026, 11, 21, 14, tzinfo=UTC), "DEFA-0001")
    with core.database.read() as db:
        assert db.scalars(select(Task.user)).one() == "schedule nightly"
    clock.passed -= 1800
    make_due(core)
    later(core, minutes=31)
    make_due(core)
    assert len(titles(core)) == 1
    later(core, hours=1)
    make_due(core)
    assert len(titles(core)) == 2


def test_a_task_that_an_agent_takes_at_once_wakes_the_supervisor_for_its_order(
    core_factory: CoreFactory, sqlite_url: str, clock: HandClock, broker: Broker
) -> None:
    core = core_factory(sqlite_url, broker=broker, clock=clock)
    admin = system_caller(core)
    make_project(core, admin)
    agents.create(core, admin, AgentRequest(name="lead", instructions="Lead."))
    add(core, admin, task={"title": "Tidy up", "assignee": "lead"})
    later(core, hours=1)
    with closing(broker.subscribe(WAKE)) as waked:
        make_due(core)
        wait_until(lambda: waked.get_message(ignore_subscribe_messages=True, timeout=1.0))
    with core.database.read() as db:
        assert db.scalars(select(Task.order_id)).one() is not None


@pytest.mark.dialects
def test_many_who_look_at_once_make_one_task(core: Core, admin: Caller) -> None:
    add(core, admin)
    later(core, hours=1)
    together = Barrier(4)

    def look(_: int) -> int:
        together.wait()
        return make_due(core)

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(look, range(4)))
    assert (sorted(made), len(titles(core))) == ([0, 0, 0, 1], 1)


def test_what_was_missed_is_made_up_for_as_the_schedule_says(core: Core, admin: Caller, clock: HandClock) -> None:
    cases = [
        ("once", timedelta(seconds=50), 1),
        ("once", timedelta(days=2, minutes=5), 1),
        ("skip", timedelta(seconds=50), 1),
        ("skip", timedelta(seconds=61), 0),
        ("skip", timedelta(days=2, minutes=5), 0),
        ("skip", timedelta(days=2, seconds=30), 1),
    ]
    for missed, late, count in cases:
        made, before = add(core, admin, missed=missed), len(titles(core))
        assert made.next_at is not None
        clock.sleep((made.next_at - clock.now() + late).total_seconds())
        make_due(core)
        make_due(core)
        shown = schedules.show(core, admin, "nightly")
        assert (missed, late, len(titles(core)) - before) == (missed, late, count)
        assert shown.next_at is not None
        assert core.clock.now() < shown.next_at <= core.clock.now() + timedelta(hours=1)
        assert bool(shown.last_error) is (count == 0)
        schedules.remove(core, admin, "nightly")


def test_a_schedule_that_is_off_makes_nothing_and_goes_on_from_now_when_it_is_on_again(
    core: Core, admin: Caller
) -> None:
    add(core, admin)
    off = schedules.edit(core, admin, "nightly", ScheduleEdit(enabled=False))
    later(core, hours=5, minutes=30)
    make_due(core)
    on = schedules.edit(core, admin, "nightly", ScheduleEdit(enabled=True))
    make_due(core)
    assert titles(core) == []
    assert (off.next_at, off.upcoming) == (None, [])
    assert on.next_at == datetime(2026, 11, 21, 18, tzinfo=UTC)


def test_a_task_that_cannot_be_made_is_noted_and_the_schedule_goes_on(core: Core, admin: Caller) -> None:
    add(core, admin, task={"title": "x", "project": "web", "assignee": "user"})
    projects.remove(core, admin, "web")
    later(core, hours=1)
    make_due(core)
    failed = schedules.show(core, admin, "nightly")
    make_project(core, admin)
    later(core, hours=1)
    make_due(core)
    assert "'web'" in failed.last_error
    assert failed.last_task is None
    assert schedules.show(core, admin, "nightly").last_error == ""
    assert titles(core) == ["x"]


def test_schedules_that_cannot_be_read_are_turned_off_and_keep_no_other_back(
    core: Core, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control_plane.automation.schedules._AT_ONCE", 3)
    odd = {"timezone": "No/Where"}, {"cron": "every now and then"}, {"task": {"title": 7}}
    for number, values in enumerate(odd):
        broken = add(core, admin, f"broken-{number}")
        with core.database.write() as db:
            db.execute(update(Schedule).where(Schedule.id == broken.id).values(**values))
    later(core, minutes=1)
    add(core, admin, "whole")
    later(core, hours=1)
    assert (make_due(core), make_due(core)) == (0, 1)
    shown = [schedules.show(core, admin, f"broken-{number}") for number in range(len(odd))]
    assert [(each.enabled, "cannot be read" in each.last_error) for each in shown] == [(False, True)] * len(odd)


def test_a_fault_of_the_database_concerns_no_schedule_and_leaves_them_all_on(core: Core, admin: Caller) -> None:
    add(core, admin)
    later(core, hours=1)
    faults: list[Exception] = [
        OperationalError("INSERT", None, psycopg.errors.QueryCanceled("canceling statement due to statement timeout")),
        OperationalError("INSERT", None, sqlite3.OperationalError("no such column: tasks.color")),
        InterfaceError("INSERT", None, sqlite3.InterfaceError("bad parameter or other API misuse")),
        NoConnection("QueuePool limit of size 5 overflow 10 reached"),
    ]
    met = list(faults)

    def fail(*given: Any) -> None:
        if met and given[2].startswith("INSERT INTO tasks"):
            raise met.pop(0)

    event.listen(core.database.engine, "before_cursor_execute", fail)
    for fault in faults:
        with pytest.raises((FleetError, type(fault))):
            make_due(core)
        shown = schedules.show(core, admin, "nightly")
        assert (shown.enabled, shown.last_error) == (True, "")
    make_due(core)
    assert len(titles(core)) == 1


def test_a_schedule_that_could_never_work_is_refused(core: Core, admin: Caller) -> None:
    add(core, admin, "taken")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"cron": "0 0 30 2 *"}, "E-SCHEDULE-CRON"),
        ({"timezone": "Europe/Nowhere"}, "E-SCHEDULE-ZONE"),
        ({"name": "Not a name"}, "E-NAME"),
        ({"name": "taken"}, "E-SCHEDULE-NAME"),
        ({"task": {"title": ""}}, "E-EMPTY"),
        ({"task": {"title": "x", "project": "nope"}}, "E-PROJECT-404"),
        ({"task": {"title": "x", "assignee": "nobody"}}, "E-AGENT-404"),
    ]
    codes = [code_of(lambda fields=fields: add(core, admin, **fields)) for fields, _ in cases]
    assert codes == [code for _, code in cases]
    assert [each.name for each in schedules.list_(core, admin)] == ["taken"]


def test_a_schedule_shows_its_next_five_times_and_can_be_run_now_beside_them(core: Core, admin: Caller) -> None:
    shown = add(core, admin, cron="30 2 * * *", timezone="Europe/Berlin")
    assert [f"{each:%m-%d %H:%M}" for each in shown.upcoming] == [f"11-{day} 01:30" for day in range(22, 27)]
    operator = Caller(admin.organization_id, admin.organization, "operator", "kim")
    task = schedules.run_now(core, operator, "nightly")
    after = schedules.show(core, admin, "nightly")
    assert (task.title, after.last_task, after.next_at) == ("Tidy up 2026-11-21", task.id, shown.upcoming[0])
