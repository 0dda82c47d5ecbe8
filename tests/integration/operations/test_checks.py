"""Providers and projects are checked by orders of their own, apart from people's; the result is shown with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from control_plane.contract.declarations.inbox import InboxItem
from control_plane.contract.declarations.projects import ProjectDocument, ProjectEdit, ProjectRequest
from control_plane.contract.declarations.providers import ProviderDocument, ProviderEdit, ProviderRequest
from control_plane.core import Caller
from control_plane.db.orders import Order
from control_plane.operations import organizations, projects, providers
from control_plane.operations.inbox.listing import count_inbox, list_inbox
from control_plane.operations.orders import reading
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.sessions import reading as sessions
from control_plane.operations.status import status
from shared.events import ChargeStep, CheckedCommand, ErrorStep, ProjectCheckStep, ProviderCheckStep, Usage
from shared.names import new_id
from shared.work_order import WorkOrder
from tests.support.organizations import add_organization
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

FACTS: dict[str, Any] = {"total_ms": 240, "price": "listed", "tool_calls": "native", "context_window": 128_000}
WORKS = ProviderCheckStep(ok=True, summary="It answered in 240 ms.", **FACTS)
BAD_KEY = ProviderCheckStep(
    ok=False, summary="The key was rejected.", code="E-CHECK-KEY", detail="bad \0 key", next="fleet provider show main"
)


def add_provider(plane: Plane, **fields: Any) -> ProviderDocument:
    request = ProviderRequest(**{"name": "main", "model": "openai/x", "check": True, **fields})
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


def test_a_provider_is_checked_once_a_drone_appears_and_says_whether_it_works_and_else_what_to_do(plane: Plane) -> None:
    """The reason is that of the report, else that of the run's last error."""
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
    assert check.model_dump(include=set(FACTS)) == FACTS
    assert (check.at is not None, check.code, check.next) == (True, None, None)
    assert status(plane.core, plane.admin).totals.cost_usd == pytest.approx(0.002)

    error = ErrorStep(what="environment variable KEY is not set on this drone", code="E-KEY-MISSING", next="export KEY")
    refused = oka.ended(status="failed", exit_status="refused", reason="no key", unsuitable=True)
    for step, end, *told in (
        (BAD_KEY, oka.ended(), BAD_KEY.summary, BAD_KEY.code, BAD_KEY.next, "bad  key"),
        (error, refused, "Environment variable KEY is not set on this drone.", error.code, error.next, None),
    ):
        providers.try_out(plane.core, plane.admin, "main")
        oka.report(take(oka), step, end)
        check = until(plane, "failed", oka).check
        assert [check.summary, check.code, check.next, check.detail] == told
    assert [each.check.state for each in providers.list_(plane.core, plane.admin)] == ["failed", "skipped"]


def test_what_does_not_work_waits_in_the_inbox_until_it_works_is_tried_again_or_is_removed(plane: Plane) -> None:
    """For the user who asked for the check, and for all."""
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    add_provider(plane, name="main")
    add_provider(plane, name="spare")
    add_project(plane)

    def waiting(**filters: Any) -> dict[str, InboxItem]:
        return {each.id: each for each in list_inbox(plane.core, plane.admin, **filters)}

    refused = {"code": "E-PROJECT-GIT", "next": "on the drone: ssh-add"}
    fails: dict[str, ProviderCheckStep | ProjectCheckStep] = {
        "main": BAD_KEY,
        "spare": ProviderCheckStep(ok=False, summary="It did not answer."),
        "shop": ProjectCheckStep(ok=False, summary="The repository could not be read.", **refused),
    }
    names = {f"provider:{providers.show(plane.core, plane.admin, each).id}": each for each in ("main", "spare")}
    names[f"project:{projects.show(plane.core, plane.admin, 'shop').id}"] = "shop"
    for _ in fails:
        order = take(oka)
        oka.report(order, fails["shop" if order.purpose == "check_project" else order.provider.name], oka.ended())
    plane.until(lambda: oka.beat() or len(waiting()) == 3)
    expected = {
        "main": ("provider", BAD_KEY.summary, BAD_KEY.next),
        "spare": ("provider", "It did not answer.", "fleet provider test spare"),
        "shop": ("project", "The repository could not be read.", refused["next"]),
    }
    assert {each.title: (each.kind, each.text, each.next) for each in waiting().values()} == expected
    assert {names[each.id]: (each.drone, each.may_answer) for each in waiting().values()} == dict.fromkeys(
        names.values(), ("oka", True)
    )
    assert {each.title for each in waiting(kind="provider").values()} == {"main", "spare"}
    counts = count_inbox(plane.core, plane.admin).kinds
    assert (counts["provider"], counts["project"]) == (2, 1)
    other = Caller(new_id(), "other", "admin", "ann", everywhere=True)
    assert list_inbox(plane.core, other) == []
    found = {each.title: each.next for each in list_inbox(plane.core, other, everywhere=True)}
    assert found == {
        "main": f"{BAD_KEY.next} --org default",
        "spare": "fleet provider test spare --org default",
        "shop": refused["next"],
    }
    plane.edit(Order, checks(plane)[0].id, user_id="u1")
    assert len(list_inbox(plane.core, replace(plane.admin, user_id="u1"), mine=True)) == 1

    providers.try_out(plane.core, plane.admin, "main")
    assert {each.title for each in waiting().values()} == {"spare", "shop"}
    oka.report(take(oka), WORKS, oka.ended(reason=WORKS.summary))
    until(plane, "ok", oka)
    providers.remove(plane.core, plane.admin, "spare")
    projects.edit(plane.core, plane.admin, "shop", ProjectEdit(branch="next"))
    assert waiting() == {}


def test_checks_are_in_no_list_of_peoples_orders_and_keep_nothing_from_being_removed(plane: Plane) -> None:
    core, admin = plane.core, plane.admin
    order_id = add_provider(plane).check.order
    add_project(plane)
    assert reading.list_orders(core, admin) == sessions.list_(core, admin) == []
    assert status(core, admin).orders == {}
    found = [each.purpose for each in reading.list_orders(core, admin, every=True)]
    assert found == ["check_project", "check_provider"]

    cancel(core, admin, str(order_id))
    assert (shown(plane).check.state, shown(plane).check.order) == ("unchecked", None)
    assert "fleet provider test main" in shown(plane).check.summary
    providers.try_out(core, admin, "main")
    providers.remove(core, admin, "main")
    projects.remove(core, admin, "shop")
    assert [order.status for order in checks(plane)] == ["canceled"] * 3
    payments = add_organization(core, admin)
    providers.add(core, payments, ProviderRequest(name="main", model="openai/x", check=True))
    organizations.remove(core, admin, "payments")


def test_people_go_before_a_check_that_waits_and_one_that_runs_which_is_repeated_later(plane: Plane) -> None:
    """That of a project shows what became of each command."""
    plane.collector(), plane.supervisor()
    oka = plane.drone("oka", concurrency=1)
    work = plane.submit()
    taken = take(oka)
    asked = add_project(plane, setup=["make venv"], verify=["make test"])
    assert asked.check.summary.endswith("oka is busy: 1 of 1 slots in use")
    later = plane.submit("another")
    oka.report(taken, oka.ended())
    order = take(oka)
    assert order.order_id == later
    plane.until(lambda: plane.status(work) == "succeeded")
    oka.report(order, oka.ended())

    check = take(oka)
    assert (check.purpose, check.project.slug, check.project.verify) == ("check_project", "shop", ("make test",))
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
    command = CheckedCommand(phase="setup", command="make venv", passed=False, return_code=2, output="no make\n")
    oka.report(again, ProjectCheckStep(ok=False, summary="No.", remote_ms=9, commands=(command,)), oka.ended())
    plane.until(lambda: projects.show(plane.core, plane.admin, "shop").check.state == "failed")
    found = projects.show(plane.core, plane.admin, "shop").check
    assert [(each.command, each.passed, each.output) for each in found.commands or ()] == [
        ("make venv", False, "no make\n")
    ]


def test_a_change_of_what_was_checked_checks_again_and_any_other_change_does_not(plane: Plane) -> None:
    """Without a check nothing is checked until it is asked for."""
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
    of_provider = [(order.status, order.model) for order in checks(plane) if order.purpose == "check_provider"]
    assert of_provider == [("canceled", "openai/x"), ("canceled", "openai/y"), ("queued", "openai/y")]

    assert providers.edit(core, admin, "main", ProviderEdit(check=False, model="openai/z")).check.state == "skipped"
    assert provider_after(model="openai/x") is None
    assert {order.status for order in checks(plane) if order.purpose == "check_provider"} == {"canceled"}
    asked = [providers.try_out(core, admin, "main").check.order for _ in range(2)]
    assert asked[0] == asked[1] is not None
    assert provider_after(model="openai/z", check=True) not in {None, asked[0]}

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
    oka.report(take(oka), BAD_KEY, oka.ended())
    until(plane, "failed", oka)
    oka.report(outdated, WORKS, oka.ended())
    plane.until(lambda: plane.status(outdated.order_id) == "canceled")
    assert shown(plane).check.summary == BAD_KEY.summary
