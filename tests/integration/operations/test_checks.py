"""Providers and projects are checked by orders of their own, apart from people's; the result is shown with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.contract.declarations.checks import CheckDocument
from control_plane.contract.declarations.inbox import InboxItem
from control_plane.contract.declarations.projects import ProjectEdit, ProjectRequest
from control_plane.contract.declarations.providers import ProviderDocument, ProviderEdit, ProviderRequest
from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Provider
from control_plane.operations import organizations, projects, providers
from control_plane.operations.inbox.listing import count_inbox, list_inbox
from control_plane.operations.orders import reading
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.sessions import reading as sessions
from control_plane.operations.status import status
from control_plane.services.checks import noted
from shared.events import ChargeStep, CheckedCommand, ErrorStep, ProjectCheckStep, ProviderCheckStep, Usage
from shared.names import new_id
from shared.states import OrderStatus
from shared.work_order import WorkOrder
from tests.support.made import make_drone
from tests.support.organizations import add_organization
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn
from tests.support.turns import end

FACTS: dict[str, Any] = {"total_ms": 240, "price": "listed", "tool_calls": "native", "context_window": 128_000}
WORKS = ProviderCheckStep(ok=True, summary="It answered in 240 ms.", **FACTS)
BAD_KEY = ProviderCheckStep(
    ok=False, summary="The key was rejected.", code="E-CHECK-KEY", detail="bad \0 key", next="fleet provider show main"
)
NO_KEY = ErrorStep(what="environment variable KEY is not set on this drone", code="E-KEY-MISSING", next="export KEY")


def add_provider(core: Core, caller: Caller, name: str = "main", **fields: Any) -> CheckDocument:
    request = ProviderRequest(**{"name": name, "model": "openai/x", "check": True, **fields})
    return providers.add(core, caller, request).check


def add_project(core: Core, caller: Caller, **fields: Any) -> CheckDocument:
    request = ProjectRequest(**{"slug": "shop", "git_url": "https://git.example/shop.git", "check": True, **fields})
    return projects.add(core, caller, request).check


def shown(core: Core, caller: Caller) -> CheckDocument:
    return providers.show(core, caller, "main").check


def ask(core: Core, caller: Caller, name: str = "main") -> ProviderDocument:
    return providers.try_out(core, caller, name)


def find(core: Core, order_id: str | None, step: ProviderCheckStep | ProjectCheckStep) -> None:
    """Let the run of a check report this."""
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        noted(db, core, order, Drone(name="oka"), step)


def checks(core: Core) -> list[Order]:
    with core.database.read() as db:
        return list(db.scalars(select(Order).where(Order.purpose.startswith("check_")).order_by(Order.number)))


def take(drone: DroneStandIn) -> WorkOrder:
    """Claim the next order, and report that its run began."""
    order: WorkOrder = drone.until(lambda: drone.beat() or drone.take())
    assert drone.claim(order)
    drone.report(order, drone.started())
    return order


def test_a_provider_is_checked_once_a_drone_appears(plane: Plane) -> None:
    core, admin = plane.core, plane.admin
    added = add_provider(core, admin, api_key="sk-sealed")
    assert (added.state, added.drone) == ("unchecked", None)
    assert "no drone is registered yet" in added.summary

    plane.collector(), plane.supervisor()
    oka = plane.drone("oka")
    order = take(oka)
    assert (order.purpose, order.provider.name, order.provider.api_key) == ("check_provider", "main", "sk-sealed")
    plane.until(lambda: oka.beat() or shown(core, admin).state == "checking")
    assert shown(core, admin).drone == "oka"
    spent = {"input_tokens": 9, "output_tokens": 1, "cost_usd": 0.002}
    oka.report(order, ChargeStep(about="service", usage=Usage.model_validate(spent)), WORKS)
    oka.report(order, oka.ended(reason=WORKS.summary, stats=spent))
    plane.until(lambda: shown(core, admin).state == "ok")
    check = shown(core, admin)
    assert (check.summary, check.drone, check.order) == (WORKS.summary, "oka", order.order_id)
    assert check.model_dump(include=set(FACTS)) == FACTS
    assert (check.at is not None, check.code, check.next) == (True, None, None)
    assert status(core, admin).totals.cost_usd == pytest.approx(0.002)
    assert [each.check.state for each in providers.list_(core, admin)] == ["ok", "skipped"]


def test_a_check_that_failed_says_why_and_what_to_do(core: Core, admin: Caller) -> None:
    """The reason is that of the report, else that of the run's last error, else that of the order."""
    make_drone(core, admin, "oka")
    order = add_provider(core, admin).order
    find(core, order, BAD_KEY)
    end(core, str(order), steps=())
    check = shown(core, admin)
    assert [check.summary, check.code, check.next, check.detail] == [
        *(BAD_KEY.summary, BAD_KEY.code, BAD_KEY.next),
        "bad  key",
    ]
    for steps, *told in (
        ([NO_KEY], "Environment variable KEY is not set on this drone.", NO_KEY.code, NO_KEY.next, None),
        ([], "So it ended.", None, None, None),
    ):
        end(core, str(ask(core, admin).check.order), steps=steps, to=OrderStatus.FAILED, exit_status="refused")
        check = shown(core, admin)
        assert [check.state, check.summary, check.code, check.next, check.detail] == ["failed", *told]


def test_what_does_not_work_waits_in_the_inbox_until_it_works_is_tried_again_or_is_removed(
    core: Core, admin: Caller
) -> None:
    """For the user who asked for the check, and for all."""
    make_drone(core, admin, "oka", concurrency=9)

    def waiting(caller: Caller, **filters: Any) -> dict[str, InboxItem]:
        return {each.title: each for each in list_inbox(core, caller, **filters)}

    main, spare, shop = add_provider(core, admin), add_provider(core, admin, "spare"), add_project(core, admin)
    silent = ProviderCheckStep(ok=False, summary="It did not answer.")
    unread = ProjectCheckStep(
        ok=False, summary="The repository could not be read.", code="E-PROJECT-GIT", next="on the drone: ssh-add"
    )
    for order, step in ((main.order, BAD_KEY), (spare.order, silent), (shop.order, unread)):
        find(core, order, step)
        end(core, str(order), steps=())
    found = waiting(admin)
    assert {title: (each.kind, each.text, each.next) for title, each in found.items()} == {
        "main": ("provider", BAD_KEY.summary, BAD_KEY.next),
        "spare": ("provider", silent.summary, "fleet provider test spare"),
        "shop": ("project", unread.summary, unread.next),
    }
    assert {(each.drone, each.may_answer) for each in found.values()} == {("oka", True)}
    assert waiting(admin, kind="provider").keys() == {"main", "spare"}
    counts = count_inbox(core, admin).kinds
    assert (counts["provider"], counts["project"]) == (2, 1)
    other = Caller(new_id(), "other", "admin", "ann", everywhere=True)
    assert waiting(other) == {}
    assert {title: each.next for title, each in waiting(other, everywhere=True).items()} == {
        "main": f"{BAD_KEY.next} --org default",
        "spare": "fleet provider test spare --org default",
        "shop": unread.next,
    }
    with core.database.write() as db:
        db.get_one(Order, main.order).user_id = "u1"
    assert waiting(replace(admin, user_id="u1"), mine=True).keys() == {"main"}

    order = ask(core, admin).check.order
    assert waiting(admin).keys() == {"spare", "shop"}
    find(core, order, WORKS)
    end(core, str(order), steps=())
    assert shown(core, admin).state == "ok"
    providers.remove(core, admin, "spare")
    projects.edit(core, admin, "shop", ProjectEdit(branch="next"))
    assert waiting(admin) == {}


def test_checks_are_in_no_list_of_peoples_orders_and_keep_nothing_from_being_removed(core: Core, admin: Caller) -> None:
    order_id = add_provider(core, admin).order
    add_project(core, admin)
    assert reading.list_orders(core, admin) == sessions.list_(core, admin) == []
    assert status(core, admin).orders == {}
    found = [each.purpose for each in reading.list_orders(core, admin, every=True)]
    assert found == ["check_project", "check_provider"]

    cancel(core, admin, str(order_id))
    assert (shown(core, admin).state, shown(core, admin).order) == ("unchecked", None)
    assert "fleet provider test main" in shown(core, admin).summary
    ask(core, admin)
    providers.remove(core, admin, "main")
    projects.remove(core, admin, "shop")
    assert [order.status for order in checks(core)] == ["canceled"] * 3
    add_provider(core, add_organization(core, admin))
    organizations.remove(core, admin, "payments")


def test_people_go_before_a_check_that_waits_and_one_that_runs_which_is_repeated_later(running: Plane) -> None:
    """That of a project shows what became of each command."""
    oka = running.drone("oka", concurrency=1)
    work = running.submit()
    taken = take(oka)
    asked = add_project(running.core, running.admin, setup=["make venv"], verify=["make test"])
    assert asked.summary.endswith("oka is busy: 1 of 1 slots in use")
    later = running.submit("another")
    oka.report(taken, oka.ended())
    order = take(oka)
    assert order.order_id == later
    running.reaches(work, "succeeded")
    oka.report(order, oka.ended())

    check = take(oka)
    assert (check.purpose, check.project.slug, check.project.verify) == ("check_project", "shop", ("make test",))
    work = running.submit()
    told = running.until(lambda: oka.beat(oka.run_beat(check)) or oka.told("cancel"))
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
    running.reaches(again.order_id, "succeeded")
    found = projects.show(running.core, running.admin, "shop").check
    assert [(each.command, each.passed, each.output) for each in found.commands or ()] == [
        ("make venv", False, "no make\n")
    ]


def test_a_change_of_what_was_checked_checks_again_and_any_other_change_does_not(core: Core, admin: Caller) -> None:
    """Without a check nothing is checked until it is asked for, and what an outdated one reports no longer counts."""

    def provider_after(**changes: Any) -> str | None:
        return providers.edit(core, admin, "main", ProviderEdit(**changes)).check.order

    def project_after(**changes: Any) -> str | None:
        return projects.edit(core, admin, "shop", ProjectEdit(**changes)).check.order

    first = add_provider(core, admin).order
    assert provider_after(rpm=7) == provider_after(model="openai/x") == first
    assert len({first, provider_after(model="openai/y"), provider_after(api_key="sk-other")}) == 3
    assert [(order.status, order.model) for order in checks(core)] == [
        ("canceled", "openai/x"), ("canceled", "openai/y"), ("queued", "openai/y")
    ]  # fmt: skip
    find(core, first, WORKS)
    with core.database.read() as db:
        assert db.scalars(select(Provider.check_report).where(Provider.name == "main")).one() is None

    assert providers.edit(core, admin, "main", ProviderEdit(check=False, model="openai/z")).check.state == "skipped"
    assert provider_after(model="openai/x") is None
    assert {order.status for order in checks(core)} == {"canceled"}
    asked = [ask(core, admin).check.order for _ in range(2)]
    assert asked[0] == asked[1] is not None
    assert provider_after(model="openai/z", check=True) not in {None, asked[0]}

    first = add_project(core, admin).order
    assert project_after(name="Shop", budget_usd_day=5.0) == first
    changes: list[dict[str, Any]] = [{"branch": "dev"}, {"verify": ["true"]}, {"git_url": "https://git.example/b.git"}]
    assert len({first, *(project_after(**each) for each in changes)}) == 4
