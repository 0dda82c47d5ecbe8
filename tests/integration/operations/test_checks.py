"""Providers and projects are checked by orders of their own, apart from people's; the result is shown with them."""

from __future__ import annotations

from dataclasses import replace
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
from shared.errors import Forbidden
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


def test_a_provider_stays_unchecked_until_a_drone_appears_and_is_checked_then(any_plane: Plane) -> None:
    added = add_provider(any_plane, api_key="sk-sealed")
    assert (added.check.state, added.check.drone) == ("unchecked", None)
    assert "no drone is registered yet" in added.check.summary

    any_plane.collector(), any_plane.supervisor()
    oka = any_plane.drone("oka")
    order = take(oka)
    assert (order.purpose, order.provider.name, order.provider.api_key) == ("check_provider", "main", "sk-sealed")
    assert until(any_plane, "checking", oka).check.drone == "oka"

    oka.report(order, WORKS, oka.ended(reason=WORKS.summary))
    check = until(any_plane, "ok", oka).check
    assert (check.summary, check.drone, check.order) == (WORKS.summary, "oka", order.order_id)
    assert check.model_dump(include={"total_ms", "price", "tool_calls", "reports_usage", "context_window"}) == {
        "total_ms": 240,
        "price": "listed",
        "tool_calls": "native",
        "reports_usage": True,
        "context_window": 128_000,
    }
    assert check.at is not None
    assert (check.code, check.next) == (None, None)


def test_a_provider_that_does_not_work_says_why_and_what_to_do(any_plane: Plane) -> None:
    any_plane.collector(), any_plane.supervisor()
    oka = any_plane.drone("oka")
    add_provider(any_plane)
    order = take(oka)
    oka.report(order, BAD_KEY, oka.ended())

    check = until(any_plane, "failed", oka).check
    assert (check.summary, check.code, check.next) == (BAD_KEY.summary, BAD_KEY.code, BAD_KEY.next)
    assert check.detail == "bad  key"
    assert [each.check.state for each in providers.list_(any_plane.core, any_plane.admin)] == ["failed", "skipped"]


def test_a_project_shows_what_became_of_each_command(any_plane: Plane) -> None:
    any_plane.collector(), any_plane.supervisor()
    oka = any_plane.drone("oka")
    add_project(any_plane, setup=["make venv"], verify=["make test"])
    order = take(oka)
    assert (order.purpose, order.project.slug, order.project.verify) == ("check_project", "shop", ("make test",))
    command = CheckedCommand(phase="setup", command="make venv", passed=False, return_code=2, output="no make\n")
    failed = ProjectCheckStep(
        ok=False, summary="Set-up failed.", code="E-CHECK-SETUP", remote_ms=9, commands=(command,)
    )
    oka.report(order, failed, oka.ended())

    def found() -> ProjectDocument:
        return projects.show(any_plane.core, any_plane.admin, "shop")

    any_plane.until(lambda: found().check.state == "failed")
    assert found().check.remote_ms == 9
    assert [(each.command, each.passed, each.output) for each in found().check.commands or ()] == [
        ("make venv", False, "no make\n")
    ]


def test_a_check_without_a_report_failed_for_the_reason_of_its_last_error(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    add_provider(plane)
    order = take(oka)
    error = ErrorStep(what="environment variable KEY is not set on this drone", code="E-KEY-MISSING", next="export KEY")
    oka.report(order, error, oka.ended(status="failed", exit_status="refused", reason="no key", unsuitable=True))

    check = until(plane, "failed", oka).check
    assert check.summary == "Environment variable KEY is not set on this drone."
    assert (check.code, check.next, check.drone) == ("E-KEY-MISSING", "export KEY", "oka")


def test_a_drone_that_cannot_use_the_key_leaves_the_check_to_another(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    drones = {each.name: each for each in (plane.drone("oka"), plane.drone("mila"))}
    add_provider(plane)
    first = plane.until(lambda: shown(plane).check.drone)
    order = take(drones[first])
    end = {"status": "failed", "exit_status": "refused", "reason": "no key", "unsuitable": True}
    drones[first].report(order, ErrorStep(what="no key", code="E-KEY-MISSING"), drones[first].ended(**end))

    other = next(drone for name, drone in drones.items() if name != first)
    order = take(other)
    other.report(order, WORKS, other.ended())
    assert until(plane, "ok", *drones.values()).check.drone == other.name


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


def test_a_check_waits_for_a_free_slot_and_people_go_first(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka", concurrency=1)
    work = plane.submit()
    taken = take(oka)
    assert add_provider(plane).check.summary.endswith("oka is busy: 1 of 1 slots in use")
    later = plane.submit("another", provider="scripted")

    oka.report(taken, oka.ended())
    assert take(oka).order_id == later
    plane.until(lambda: plane.status(work) == "succeeded")
    assert shown(plane).check.state == "unchecked"


def test_a_running_check_gives_its_slot_to_a_persons_order_and_is_repeated_later(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka", concurrency=1)
    add_project(plane)
    check = take(oka)
    work = plane.submit()

    told = plane.until(lambda: oka.beat(oka.run_beat(check)) or oka.told("cancel"))
    assert [(each.body.run_id, each.body.reason) for each in told] == [(check.run_id, f"order {work} needs its slot")]
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
    first = shown(plane).check.order
    core, admin = plane.core, plane.admin

    providers.edit(core, admin, "main", ProviderEdit(rpm=7))
    assert shown(plane).check.order == first
    providers.edit(core, admin, "main", ProviderEdit(model="openai/x"))
    assert shown(plane).check.order == first
    providers.edit(core, admin, "main", ProviderEdit(model="openai/y"))
    second = shown(plane).check.order
    providers.edit(core, admin, "main", ProviderEdit(api_key="sk-other"))

    assert len({first, second, shown(plane).check.order}) == 3
    assert [(order.status, order.model) for order in checks(plane)] == [
        ("canceled", "openai/x"),
        ("canceled", "openai/y"),
        ("queued", "openai/y"),
    ]


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


def test_a_project_is_checked_again_for_its_repository_and_commands_only(plane: Plane) -> None:
    add_project(plane)
    core, admin = plane.core, plane.admin

    def order_after(**changes: Any) -> str | None:
        return projects.edit(core, admin, "shop", ProjectEdit(**changes)).check.order

    first = projects.show(core, admin, "shop").check.order
    assert order_after(name="Shop", budget_usd_day=5.0) == first
    orders = [order_after(branch="dev"), order_after(verify=["true"]), order_after(git_url="https://git.example/b.git")]
    assert len({first, *orders}) == 4


def test_without_a_check_nothing_is_checked_until_it_is_asked_for(plane: Plane) -> None:
    core, admin = plane.core, plane.admin
    assert add_provider(plane, check=False).check.state == "skipped"
    assert providers.edit(core, admin, "main", ProviderEdit(model="openai/y")).check.state == "skipped"
    assert checks(plane) == []

    assert providers.edit(core, admin, "main", ProviderEdit(model="openai/z", check=True)).check.state == "unchecked"
    assert providers.edit(core, admin, "main", ProviderEdit(model="openai/x", check=False)).check.state == "skipped"
    assert [order.status for order in checks(plane)] == ["canceled"]


def test_a_test_by_hand_is_not_repeated_while_it_waits_or_runs_and_is_after_its_end(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    core, admin = plane.core, plane.admin
    add_provider(plane, check=False)
    asked = providers.try_out(core, admin, "main").check.order
    order = take(oka)
    assert providers.try_out(core, admin, "main").check.order == asked == order.order_id

    oka.report(order, WORKS, oka.ended())
    until(plane, "ok", oka)
    assert providers.try_out(core, admin, "main").check.order != asked


def test_operators_may_try_and_viewers_may_not(plane: Plane) -> None:
    operator, viewer = (replace(plane.admin, role=role, everywhere=False) for role in ("operator", "viewer"))
    assert providers.try_out(plane.core, operator, "scripted").check.state == "unchecked"
    assert projects.try_out(plane.core, operator, "app").check.state == "unchecked"
    with pytest.raises(Forbidden):
        providers.try_out(plane.core, viewer, "scripted")
    with pytest.raises(Forbidden):
        projects.try_out(plane.core, viewer, "app")


def test_an_unfinished_check_keeps_nothing_from_being_removed(plane: Plane) -> None:
    add_provider(plane)
    add_project(plane)
    providers.remove(plane.core, plane.admin, "main")
    projects.remove(plane.core, plane.admin, "shop")
    assert [order.status for order in checks(plane)] == ["canceled", "canceled"]

    payments = add_organization(plane.core, plane.admin)
    providers.add(plane.core, payments, ProviderRequest(name="main", model="openai/x", check=True))
    organizations.remove(plane.core, plane.admin, "payments")


def test_a_canceled_check_leaves_its_provider_unchecked(plane: Plane) -> None:
    order_id = add_provider(plane).check.order
    assert order_id is not None
    cancel(plane.core, plane.admin, order_id)
    assert (shown(plane).check.state, shown(plane).check.order) == ("unchecked", None)
    assert shown(plane).check.summary == "never tried (next: fleet provider test main)"


def test_a_check_costs_what_its_calls_cost(plane: Plane) -> None:
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    add_provider(plane)
    order = take(oka)
    oka.report(order, ChargeStep(about="service", usage=Usage(input_tokens=9, output_tokens=1, cost_usd=0.002)), WORKS)
    oka.report(order, oka.ended(stats={"input_tokens": 9, "output_tokens": 1, "cost_usd": 0.002}))
    until(plane, "ok", oka)

    assert plane.order(order.order_id).stats.cost_usd == pytest.approx(0.002)
    assert status(plane.core, plane.admin).totals.cost_usd == pytest.approx(0.002)
