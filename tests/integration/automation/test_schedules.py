"""Schedules on each kind of database: each time makes one task, whoever looks, and however late."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import select, update

from control_plane.automation.schedules import make_due
from control_plane.core import Caller, Core
from control_plane.db.automation import Schedule
from control_plane.db.teams import Task
from control_plane.declarations.organizations import OrganizationRequest
from control_plane.declarations.schedules import ScheduleDocument, ScheduleEdit, ScheduleRequest
from control_plane.declarations.triggers import TriggerRequest
from control_plane.declarations.webhooks import WebhookRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations import organizations, projects
from control_plane.operations.automation import schedules, triggers, webhooks
from shared.errors import Conflict, Forbidden, Invalid, NotFound
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import later, make_project
from tests.support.planes import Plane

TASK = {"title": "Tidy up {{date}}", "assignee": "user"}


def add(core: Core, caller: Caller, name: str = "nightly", **fields: Any) -> ScheduleDocument:
    values = {"name": name, "cron": "0 * * * *", "task": TASK}
    return schedules.create(core, caller, ScheduleRequest.model_validate({**values, **fields}))


def titles(core: Core) -> list[str]:
    """The titles of all tasks, in the order in which they were made."""
    with core.database.read() as db:
        return list(db.scalars(select(Task.title).order_by(Task.number)))


@pytest.fixture
def core(core_factory: CoreFactory, sqlite_url: str, clock: HandClock) -> Core:
    """On SQLite, with a project; what depends on the kind of database takes `any_core`."""
    return with_project(core_factory(sqlite_url, clock=clock))


@pytest.fixture
def any_core(core_factory: CoreFactory, database_url: str, clock: HandClock) -> Core:
    """Once on each kind of database, with a project."""
    return with_project(core_factory(database_url, clock=clock))


def with_project(core: Core) -> Core:
    make_project(core, system_caller(core))
    return core


# --- making tasks ----------------------------------------------------------------------------


def test_a_schedule_makes_a_task_at_its_time_and_then_waits_for_the_next(any_core: Core) -> None:
    core, admin = any_core, system_caller(any_core)
    add(core, admin)
    make_due(core)
    assert titles(core) == []
    later(core, hours=1, seconds=2)
    make_due(core)
    make_due(core)
    shown = schedules.show(core, admin, "nightly")
    assert titles(core) == ["Tidy up 2026-11-21"]
    assert (shown.next_at, shown.last_task) == (datetime(2026, 11, 21, 14, tzinfo=UTC), "DEFA-0001")


def test_a_task_of_a_schedule_says_whose_it_is(core: Core, admin: Caller) -> None:
    add(core, admin)
    later(core, hours=1)
    make_due(core)
    with core.database.read() as db:
        task = db.scalars(select(Task)).one()
    assert (task.user, task.organization_id) == ("schedule nightly", admin.organization_id)


def test_many_who_look_at_once_make_one_task(any_core: Core) -> None:
    core, admin = any_core, system_caller(any_core)
    add(core, admin)
    later(core, hours=1)
    together = Barrier(4)

    def look(_: int) -> int:
        together.wait()
        return make_due(core)

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(look, range(4)))
    assert (sorted(made), len(titles(core))) == ([0, 0, 0, 1], 1)


def test_two_supervisors_make_one_task_and_so_do_those_that_come_after_them(any_plane: Plane) -> None:
    overdue(any_plane, "first")
    leader = any_plane.supervisor()
    any_plane.supervisor()
    any_plane.until(lambda: titles(any_plane.core))
    any_plane.stop(leader)
    any_plane.supervisor()
    overdue(any_plane, "second")
    any_plane.until(lambda: "second" in titles(any_plane.core))
    assert titles(any_plane.core) == ["first", "second"]


def overdue(plane: Plane, name: str) -> None:
    """A schedule that should have made its task three hours ago, and comes again next year."""
    made = add(plane.core, plane.admin, name, cron="0 0 1 1 *", task={"title": name, "assignee": "user"})
    plane.edit(Schedule, made.id, next_at=plane.core.clock.now() - timedelta(hours=3))


# --- what was missed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missed", "late", "count"),
    [
        ("once", timedelta(seconds=50), 1),
        ("once", timedelta(days=2, minutes=5), 1),
        ("skip", timedelta(seconds=50), 1),
        ("skip", timedelta(seconds=61), 0),
        ("skip", timedelta(days=2, minutes=5), 0),
        ("skip", timedelta(days=2, seconds=30), 1),
    ],
)
def test_what_was_missed_is_made_up_for_as_the_schedule_says(
    core: Core, admin: Caller, missed: str, late: timedelta, count: int
) -> None:
    add(core, admin, missed=missed)
    later(core, hours=1, seconds=late.total_seconds())
    make_due(core)
    make_due(core)
    shown = schedules.show(core, admin, "nightly")
    assert len(titles(core)) == count
    assert shown.next_at is not None
    assert core.clock.now() < shown.next_at <= core.clock.now() + timedelta(hours=1)
    assert bool(shown.last_error) is (count == 0)


def test_a_clock_that_is_set_back_makes_nothing_twice(core: Core, admin: Caller, clock: HandClock) -> None:
    add(core, admin)
    later(core, hours=1, seconds=1)
    make_due(core)
    clock.passed -= 1800
    make_due(core)
    later(core, minutes=31)
    make_due(core)
    assert len(titles(core)) == 1
    later(core, hours=1)
    make_due(core)
    assert len(titles(core)) == 2


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


# --- what goes wrong ---------------------------------------------------------------------------


def test_a_task_that_cannot_be_made_is_noted_and_the_schedule_goes_on(any_core: Core) -> None:
    core, admin = any_core, system_caller(any_core)
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


def test_a_schedule_without_an_agent_to_give_its_task_to_says_so(core: Core, admin: Caller) -> None:
    add(core, admin, task={"title": "x"})
    later(core, hours=1)
    make_due(core)
    assert "no agent" in schedules.show(core, admin, "nightly").last_error


def test_one_schedule_that_cannot_be_read_keeps_no_other_back(core: Core, admin: Caller) -> None:
    broken = add(core, admin, "broken")
    add(core, admin, "whole")
    with core.database.write() as db:
        db.execute(update(Schedule).where(Schedule.id == broken.id).values(timezone="No/Where"))
    later(core, hours=1)
    with pytest.raises(Exception, match="No/Where"):
        make_due(core)
    assert len(titles(core)) == 1


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"cron": "0 0 30 2 *"}, Invalid),
        ({"timezone": "Europe/Nowhere"}, Invalid),
        ({"name": "Not a name"}, Invalid),
        ({"task": {"title": ""}}, Invalid),
        ({"task": {"title": "x", "project": "nope"}}, NotFound),
        ({"task": {"title": "x", "assignee": "nobody"}}, NotFound),
    ],
)
def test_a_schedule_that_could_never_work_is_refused(
    core: Core, admin: Caller, fields: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        add(core, admin, **fields)
    assert schedules.list_(core, admin) == []


def test_a_name_is_taken_until_its_schedule_is_removed(core: Core, admin: Caller) -> None:
    first = add(core, admin)
    with pytest.raises(Conflict) as refusal:
        add(core, admin)
    schedules.remove(core, admin, "nightly")
    assert refusal.value.code == "E-SCHEDULE-NAME"
    assert add(core, admin).id != first.id


# --- what people do ------------------------------------------------------------------------------


def test_a_schedule_shows_its_next_five_times(core: Core, admin: Caller) -> None:
    shown = add(core, admin, cron="30 2 * * *", timezone="Europe/Berlin")
    assert [f"{each:%m-%d %H:%M}" for each in shown.upcoming] == [f"11-{day} 01:30" for day in range(22, 27)]
    assert shown.upcoming[0] == shown.next_at


def test_a_schedule_can_be_run_now_beside_its_times(core: Core, admin: Caller) -> None:
    added = add(core, admin)
    operator = Caller(admin.organization_id, admin.organization, "operator", "kim")
    task = schedules.run_now(core, operator, "nightly")
    shown = schedules.show(core, admin, "nightly")
    assert (task.title, shown.last_task, shown.next_at) == ("Tidy up 2026-11-21", task.id, added.next_at)


def test_another_line_counts_from_now_on(any_core: Core) -> None:
    core, admin = any_core, system_caller(any_core)
    add(core, admin)
    edited = schedules.edit(core, admin, "nightly", ScheduleEdit(cron="15  *  * * *"))
    assert (edited.cron, edited.next_at) == ("15 * * * *", datetime(2026, 11, 21, 12, 15, tzinfo=UTC))
    with pytest.raises(Invalid):
        schedules.edit(core, admin, "nightly", ScheduleEdit(cron="61 * * * *"))
    assert schedules.show(core, admin, "nightly").cron == "15 * * * *"


ACTS: list[Callable[[Core, Caller], object]] = [
    lambda core, caller: add(core, caller, "second"),
    lambda core, caller: schedules.edit(core, caller, "nightly", ScheduleEdit(enabled=False)),
    lambda core, caller: schedules.remove(core, caller, "nightly"),
]


@pytest.mark.parametrize("act", ACTS)
def test_schedules_are_for_admins(core: Core, admin: Caller, act: Callable[[Core, Caller], object]) -> None:
    add(core, admin)
    with pytest.raises(Forbidden):
        act(core, Caller(admin.organization_id, admin.organization, "operator", "kim"))


def test_an_unknown_schedule_is_answered_with_the_names_that_are_near(core: Core, admin: Caller) -> None:
    add(core, admin)
    with pytest.raises(NotFound) as refusal:
        schedules.show(core, admin, "nigthly")
    assert "nightly" in refusal.value.next


# --- other organizations ---------------------------------------------------------------------------


def test_what_belongs_to_another_organization_is_not_there(core: Core, admin: Caller, clock: HandClock) -> None:
    add(core, admin)
    triggers.create(core, admin, TriggerRequest(name="nightly", kind="github"))
    webhooks.create(core, admin, WebhookRequest(name="nightly", url="https://example.org/"))
    organizations.create(core, replace(admin, everywhere=True), OrganizationRequest(name="other"))
    other = system_caller(core, "other")
    told = {}
    for kind in (schedules, triggers, webhooks):
        with pytest.raises(NotFound) as hidden:
            kind.show(core, other, "nightly")
        with pytest.raises(NotFound):
            kind.remove(core, other, "nightly")
        told[kind] = (kind.list_(core, other), hidden.value.what)
    names = ("schedule", "trigger", "webhook")
    assert list(told.values()) == [([], f"{name} 'nightly' not found") for name in names]


def test_a_schedule_works_in_its_own_organization(core: Core, admin: Caller) -> None:
    organizations.create(core, replace(admin, everywhere=True), OrganizationRequest(name="big_team"))
    other = system_caller(core, "big_team")
    make_project(core, other, "theirs")
    add(core, other)
    later(core, hours=1)
    make_due(core)
    with core.database.read() as db:
        task = db.scalars(select(Task)).one()
    assert (task.organization_id, task.id) == (other.organization_id, "BTTT-0001")
