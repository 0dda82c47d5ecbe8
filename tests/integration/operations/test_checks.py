"""Providers and projects are checked by orders of their own, apart from people's; the result is shown with them."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.declarations.projects import ProjectDocument, ProjectEdit, ProjectRequest
from control_plane.declarations.providers import ProviderDocument, ProviderEdit, ProviderRequest
from control_plane.operations import organizations, projects, providers
from control_plane.operations.orders import reading
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.sessions import reading as sessions
from control_plane.operations.status import status
from shared.events import ChargeStep, CheckedCommand, ErrorStep, ProjectCheckStep, ProviderCheckStep, Usage
from shared.work_order import WorkOrder
from tests.support.organizations import add_organization
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

WORKS = ProviderCheckStep(
    ok=True,
    summary="It answered in 240 ms.",
    first_token_ms=120,
    total_ms=240,
    price="listed",
    input_usd=0.15,
    output_usd=0.6,
    tool_calls="native",
    streams=True,
    reports_usage=True,
    context_window=128_000,
    window_from="listed",
)
BAD_KEY = ProviderCheckStep(
    ok=False,
    summary="The key was rejected (401).",
    code="E-CHECK-KEY",
    detail="bad \0 key",
    next="fleet provider show main",
)


def add_provider(plane: Plane, *, check: bool = True, **fields: Any) -> ProviderDocument:
    request = ProviderRequest(**{"name": "main", "model": "openai/x", "check": check, **fields})
    return providers.add(plane.core, plane.admin, request)


def add_project(plane: Plane, **fields: Any) -> ProjectDocument:
    request = ProjectRequest(**{"slug": "shop", "git_url": "https://git.example/shop.git", "check": True, **fields})
    return projects.add(plane.core, plane.admin, request)


def shown(plane: Plane) -> ProviderDocument:
    return providers.show(plane.core, plane.admin, "main")


def take(drone: DroneStandIn) -> WorkOrder:
    """Claim the next order, and report that its run began."""
    order: WorkOrder = drone.until(lambda: drone.beat() or drone.take())
    assert drone.claim(order)
    drone.report(order, drone.started())
    return order


def until(plane: Plane, state: str, *drones: DroneStandIn) -> ProviderDocument:
    plane.until(lambda: [drone.beat() for drone in drones] and shown(plane).check.state == state)
    return shown(plane)


def checks(plane: Plane) -> list[Order]:
    return sorted(plane.rows(Order, Order.purpose.startswith("check_")), key=lambda order: order.number)


def beat_of(plane: Plane, drone: DroneStandIn) -> dict[str, Any]:
    """The drone's last beat that the control plane has."""
    return plane.rows(Drone, Drone.id == drone.id)[0].beat or {}


def test_a_provider_stays_unchecked_until_a_drone_appears_and_is_checked_then(plane: Plane) -> None:
    added = add_provider(plane, api_key="sk-sealed")
    assert (added.check.state, added.check.drone) == ("unchecked", None)
    assert "no drone is registered yet" in added.check.summary

    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    order = take(oka)
    assert (order.purpose, order.provider.name, order.provider.api_key) == ("check_provider", "main", "sk-sealed")
    assert until(plane, "checking", oka).check.drone == "oka"

    spent = {"input_tokens": 9, "output_tokens": 1, "cost_usd": 0.002}
    oka.report(order, ChargeStep(about="service", usage=Usage.model_validate(spent)), WORKS)
    oka.report(order, oka.ended(reason=WORKS.summary, stats=spent))
    check = until(plane, "ok", oka).check
    assert (check.summary, check.drone, check.order) == (WORKS.summary, "oka", order.order_id)
    told = {"total_ms", "price", "tool_calls", "reports_usage", "context_window"}
    assert check.model_dump(include=told) == WORKS.model_dump(include=told)
    assert check.at is not None
    assert (check.code, check.next) == (None, None)
    assert plane.order(order.order_id).stats.cost_usd == pytest.approx(0.002)
    assert status(plane.core, plane.admin).totals.cost_usd == pytest.approx(0.002)


def test_a_provider_that_does_not_work_says_why_and_what_to_do(plane: Plane) -> None:
    """The reason is that of the report, else that of the run's last error."""
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    add_provider(plane)
    order = take(oka)
    oka.report(order, BAD_KEY, oka.ended())

    check = until(plane, "failed", oka).check
    assert (check.summary, check.code, check.next) == (BAD_KEY.summary, BAD_KEY.code, BAD_KEY.next)
    assert check.detail == "bad  key"
    assert [each.check.state for each in providers.list_(plane.core, plane.admin)] == ["failed", "skipped"]

    providers.try_out(plane.core, plane.admin, "main")
    order = take(oka)
    error = ErrorStep(what="environment variable KEY is not set on this drone", code="E-KEY-MISSING", next="export KEY")
    oka.report(order, error, oka.ended(status="failed", exit_status="refused", reason="no key", unsuitable=True))

    check = until(plane, "failed", oka).check
    assert check.summary == "Environment variable KEY is not set on this drone."
    assert (check.code, check.next, check.drone) == ("E-KEY-MISSING", "export KEY", "oka")


def test_a_project_shows_what_became_of_each_command(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    add_project(plane, setup=["make venv"], verify=["make test"])
    order = take(oka)
    assert (order.purpose, order.project.slug, order.project.verify) == ("check_project", "shop", ("make test",))
    command = CheckedCommand(phase="setup", command="make venv", passed=False, return_code=2, output="no make\n")
    failed = ProjectCheckStep(
        ok=False, summary="Set-up failed.", code="E-CHECK-SETUP", remote_ms=9, commands=(command,)
    )
    oka.report(order, failed, oka.ended())

    def found() -> ProjectDocument:
        return projects.show(plane.core, plane.admin, "shop")

    plane.until(lambda: found().check.state == "failed")
    assert found().check.remote_ms == 9
    assert [(each.command, each.passed, each.output) for each in found().check.commands or ()] == [
        ("make venv", False, "no make\n")
    ]


def test_a_drone_of_an_earlier_version_is_not_asked(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    old = plane.drone("old", online=False)
    old.abilities = ("resume", "teams", "no-scripts")
    plane.until(lambda: old.beat() or beat_of(plane, old))

    assert add_provider(plane).check.drone is None
    assert plane.dispatch(plane.submit(provider="scripted")).drone_id == old.id


def test_checks_are_in_no_list_of_peoples_orders_sessions_and_projects(plane: Plane) -> None:
    add_provider(plane)
    add_project(plane)
    core, admin = plane.core, plane.admin

    assert len(checks(plane)) == 2
    assert reading.list_orders(core, admin) == []
    assert [each.purpose for each in reading.list_orders(core, admin, every=True)] == [
        "check_project",
        "check_provider",
    ]
    assert sessions.list_(core, admin) == []
    assert [each.slug for each in projects.list_(core, admin)] == ["app", "shop"]
    assert [each.name for each in providers.list_(core, admin)] == ["main", "scripted"]
    assert status(core, admin).orders == {}


def test_people_go_before_a_check_that_waits_and_one_that_runs_which_is_repeated_later(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka", concurrency=1)
    work = plane.submit()
    taken = take(oka)
    assert add_project(plane).check.summary.endswith("oka is busy: 1 of 1 slots in use")
    later = plane.submit("another")
    oka.report(taken, oka.ended())
    order = take(oka)
    assert order.order_id == later
    plane.until(lambda: plane.status(work) == "succeeded")
    oka.report(order, oka.ended())

    check = take(oka)
    assert check.purpose == "check_project"
    work = plane.submit()
    told = plane.until(lambda: oka.beat(oka.run_beat(check)) or oka.told("cancel"))
    assert [each.body.run_id for each in told] == [check.run_id]
    assert work in str(told[0].body.reason)
    oka.report(check, oka.ended(status="preempted", exit_status="canceled", reason="asked to end"))
    order = take(oka)
    assert order.order_id == work
    oka.report(order, oka.ended())

    again = take(oka)
    assert (again.order_id, again.generation) == (check.order_id, 2)
    oka.report(again, ProjectCheckStep(ok=True, summary="It works."), oka.ended())
    plane.until(lambda: projects.show(plane.core, plane.admin, "shop").check.state == "ok")


def test_a_change_of_what_was_checked_checks_again_and_any_other_change_does_not(plane: Plane) -> None:
    add_provider(plane)
    add_project(plane)
    core, admin = plane.core, plane.admin

    def provider_after(**changes: Any) -> str | None:
        return providers.edit(core, admin, "main", ProviderEdit(**changes)).check.order

    def project_after(**changes: Any) -> str | None:
        return projects.edit(core, admin, "shop", ProjectEdit(**changes)).check.order

    first = shown(plane).check.order
    assert provider_after(rpm=7) == provider_after(model="openai/x") == first
    assert len({first, provider_after(model="openai/y"), provider_after(api_key="sk-other")}) == 3
    of_provider = [order for order in checks(plane) if order.purpose == "check_provider"]
    assert [(order.status, order.model) for order in of_provider] == [
        ("canceled", "openai/x"),
        ("canceled", "openai/y"),
        ("queued", "openai/y"),
    ]

    first = projects.show(core, admin, "shop").check.order
    assert project_after(name="Shop", budget_usd_day=5.0) == first
    changes: list[dict[str, Any]] = [{"branch": "dev"}, {"verify": ["true"]}, {"git_url": "https://git.example/b.git"}]
    assert len({first, *(project_after(**each) for each in changes)}) == 4


def test_what_an_outdated_check_reports_no_longer_counts(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka", concurrency=2)
    add_provider(plane)
    outdated = take(oka)
    providers.edit(plane.core, plane.admin, "main", ProviderEdit(model="openai/y"))
    newest = take(oka)

    oka.report(newest, BAD_KEY, oka.ended())
    until(plane, "failed", oka)
    oka.report(outdated, WORKS, oka.ended())
    plane.until(lambda: plane.status(outdated.order_id) == "canceled")
    assert shown(plane).check.summary == BAD_KEY.summary


def test_without_a_check_nothing_is_checked_until_it_is_asked_for(plane: Plane) -> None:
    core, admin = plane.core, plane.admin
    assert add_provider(plane, check=False).check.state == "skipped"
    assert providers.edit(core, admin, "main", ProviderEdit(model="openai/y")).check.state == "skipped"
    assert checks(plane) == []
    assert providers.edit(core, admin, "main", ProviderEdit(model="openai/z", check=True)).check.state == "unchecked"
    assert providers.edit(core, admin, "main", ProviderEdit(model="openai/x", check=False)).check.state == "skipped"
    assert [order.status for order in checks(plane)] == ["canceled"]

    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    asked = providers.try_out(core, admin, "main").check.order
    order = take(oka)
    assert providers.try_out(core, admin, "main").check.order == asked == order.order_id
    oka.report(order, WORKS, oka.ended())
    until(plane, "ok", oka)
    assert providers.try_out(core, admin, "main").check.order != asked


def test_a_check_can_be_canceled_and_keeps_nothing_from_being_removed(plane: Plane) -> None:
    order_id = add_provider(plane).check.order
    assert order_id is not None
    cancel(plane.core, plane.admin, order_id)
    assert (shown(plane).check.state, shown(plane).check.order) == ("unchecked", None)
    assert "fleet provider test main" in shown(plane).check.summary

    providers.try_out(plane.core, plane.admin, "main")
    add_project(plane)
    providers.remove(plane.core, plane.admin, "main")
    projects.remove(plane.core, plane.admin, "shop")
    assert [order.status for order in checks(plane)] == ["canceled"] * 3

    payments = add_organization(plane.core, plane.admin)
    providers.add(plane.core, payments, ProviderRequest(name="main", model="openai/x", check=True))
    organizations.remove(plane.core, plane.admin, "payments")
