"""Races: one prompt for several drones or models; the first verified work wins, or a user or an order takes one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import event

from control_plane.cli import races as race_commands
from control_plane.contract.declarations.budgets import BudgetRequest
from control_plane.contract.declarations.inbox import InboxItem
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.races import RaceDocument, RaceRequest, TakeRequest
from control_plane.core import AuthenticatedDrone
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.operations import budgets, projects, providers, races
from control_plane.operations.inbox import dismissing
from control_plane.operations.inbox.listing import count_inbox, list_inbox
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.runs import push_grants
from control_plane.supervisor.groups import ask_judgments
from control_plane.supervisor.placing import place_queued
from shared import names
from shared.events import Delivered, Prepared
from shared.names import branch
from shared.outcome import Verification
from shared.races import PushGrantRequest
from shared.reasons import RaceBase
from shared.work_order import Base, WorkOrder
from tests.support import wait_until
from tests.support.command_lines import Unasked
from tests.support.planes import Plane
from tests.support.refusals import code_of
from tests.support.stand_in import DroneStandIn
from tests.support.turns import end

BASE = "b" * 40


@pytest.fixture
def running(plane: Plane) -> Plane:
    """A fleet of three drones whose project has a check."""
    with plane.core.database.write() as db:
        for project in db.query(Project):
            project.verify = ["pytest -q"]
    for name in ("oka", "mila", "vida"):
        plane.drone(name)
    plane.collector()
    plane.supervisor()
    return plane


def race(plane: Plane, **fields: Any) -> RaceDocument:
    request = RaceRequest.model_validate({"prompt": "do it", "project": "app", "count": 3, **fields})
    return races.submit(plane.core, plane.admin, request)


def shown(plane: Plane, document: RaceDocument) -> RaceDocument:
    return races.show(plane.core, plane.admin, document.race.id)


def begun(plane: Plane, number: int = 3) -> list[tuple[DroneStandIn, WorkOrder]]:
    """So many orders, claimed and prepared by the drones that received them."""
    taken: list[tuple[DroneStandIn, WorkOrder]] = []

    def look() -> bool:
        for drone in plane.drones:
            order = drone.take()
            if order is not None and drone.claim(order):
                drone.report(order, drone.started(), Prepared(base_commit=BASE))
                taken.append((drone, order))
        return len(taken) >= number

    plane.until(look)
    return taken


def ask_push(plane: Plane, drone: DroneStandIn, order: WorkOrder, verification: str = "verified") -> bool:
    """Whether the run may push."""
    told = AuthenticatedDrone(drone.id, plane.admin.organization_id, drone.name)
    request = PushGrantRequest(verification=Verification(verification))
    return bool(push_grants.grant_push(plane.core, told, order.run_id, request)["granted"])


def to_decide(plane: Plane) -> list[InboxItem]:
    """The races in the inbox, which counts as many."""
    items = list_inbox(plane.core, plane.admin, kind="race")
    assert count_inbox(plane.core, plane.admin).kinds["race"] == len(items)
    return items


def ends(drone: DroneStandIn, order: WorkOrder, *, pushed: bool = False, **ended: str) -> None:
    """The run ends with verified work."""
    delivered = Delivered(branch=branch(order.order_id), base_commit=BASE, head_commit=head_of(order), pushed=pushed)
    drone.report(order, delivered, drone.ended(verification=Verification.VERIFIED, **ended))


def followed(document: RaceDocument) -> int:
    """The exit code of a command that followed the race to its end."""
    return race_commands._followed(Unasked(), document.model_dump(mode="json"), as_json=True)


def is_over(document: RaceDocument) -> bool:
    """Whether a command that follows the race ends."""
    return race_commands._is_over(document.model_dump(mode="json"))


def head_of(order: WorkOrder) -> str:
    return order.order_id[0] * 40


def test_all_start_from_the_commit_of_the_first_on_drones_of_their_own_and_the_first_verified_work_wins(
    running: Plane,
) -> None:
    # Without the rule for races, the only drone that has the repository would get two of them.
    running.submit(drone="oka")
    ((drone, before),) = begun(running, 1)
    ends(drone, before, pushed=True)
    running.until(lambda: running.order(before.order_id).ended_at)
    document = race(running)
    assert [order.key for order in document.orders] == ["A", "B", "C"]
    assert running.facts(document.orders[1].id).waits == RaceBase(order=document.orders[0].id)
    taken = begun(running)
    assert [order.base for _, order in taken] == [Base(), *[Base(commit=BASE, given=True)] * 2]
    assert {drone.name for drone, _ in taken} == {"oka", "mila", "vida"}
    assert shown(running, document).race.base_commit == BASE

    drone, order = taken[1]
    assert code_of(lambda: ask_push(running, drone, order, "failed")) == "E-RACE-PUSH"
    assert shown(running, document).race.winner is None
    assert [ask_push(running, drone, order) for _ in range(2)] == [True, True]
    ends(drone, order, pushed=True)
    for other, lost in (taken[0], taken[2]):
        running.until(
            lambda other=other, lost=lost: [each.body.run_id for each in other.told("cancel")] == [lost.run_id]
        )
        assert code_of(lambda other=other, lost=lost: ask_push(running, other, lost)) == "E-RACE-PUSH"
        other.report(lost, other.ended(status="preempted", exit_status="canceled"))
    running.until(lambda: all(each.ended_at for each in shown(running, document).orders))
    after = shown(running, document)
    assert (after.race.status, after.race.winner) == ("won", order.order_id)
    assert (after.race.outcome, followed(after)) == ("done", 0)
    assert sorted(each.status for each in after.orders) == ["canceled", "canceled", "succeeded"]
    assert [each.id for each in after.orders if each.pushed] == [order.order_id]


def test_a_user_takes_one_once_all_have_ended_and_its_work_is_pushed_then(running: Plane) -> None:
    document = race(running, pick="person")
    taken = begun(running)
    for drone, order in taken:
        assert code_of(lambda drone=drone, order=order: ask_push(running, drone, order)) == "E-RACE-PUSH"
        assert to_decide(running) == []
        failed = {"status": "failed"} if order.order_id == document.orders[0].id else {}
        ends(drone, order, exit_status="max_iterations", **failed)
    running.until(lambda: shown(running, document).race.status == "undecided")
    # One that failed is not advised before one that succeeded.
    assert shown(running, document).race.reason.endswith(f"(next: fleet race take {document.race.id} B)")
    assert (shown(running, document).race.outcome, followed(shown(running, document))) == (None, 1)
    (item,) = to_decide(running)
    assert (item.id, item.race, item.title) == (f"race:{document.race.id}", document.race.id, "do it")
    assert item.text == "2 of 3 orders succeeded and left work; take one"
    assert item.next == f"fleet race take {document.race.id} {document.orders[1].id}"
    dismissing.dismiss(running.core, running.admin, item.id)
    assert to_decide(running) == []
    dismissing.restore(running.core, running.admin, item.id)
    assert to_decide(running) == [item]
    chosen = document.orders[1]
    take = TakeRequest(order="B")
    assert races.take(running.core, running.admin, document.race.id, take).race.winner == chosen.id
    assert to_decide(running) == []
    ((drone, service),) = begun(running, 1)
    assert service.purpose == "push"
    assert service.push is not None
    assert (service.push.order, service.push.work.commit) == (chosen.id, chosen.id[0] * 40)
    pushing = shown(running, document)
    assert (pushing.race.status, pushing.race.outcome, is_over(pushing)) == ("running", None, False)
    drone.report(service, Delivered(pushed=True))
    with running.core.broker.redis.pubsub(ignore_subscribe_messages=True) as pages:
        pages.subscribe(names.ORDER_CHANGED)
        drone.report(service, drone.ended())
        running.until(lambda: running.order(chosen.id).pushed)
        wait_until(lambda: (pages.get_message() or {}).get("data") == chosen.id)
    won = shown(running, document)
    assert (won.race.status, won.race.outcome, followed(won)) == ("won", "incomplete", 1)
    # Again has no effect; another one is too late.
    assert races.take(running.core, running.admin, document.race.id, TakeRequest(order=chosen.id)).race.status == "won"
    late = TakeRequest(order="A")
    assert code_of(lambda: races.take(running.core, running.admin, document.race.id, late)) == "E-RACE-DECIDED"


def test_an_order_judges_by_the_rubric_and_its_choice_is_pushed(running: Plane) -> None:
    document = race(running, pick="judge", rubric="Short is good.", count=2)
    for drone, order in begun(running, 2):
        ends(drone, order)
    ((drone, judge),) = begun(running, 1)
    assert (judge.session.mode, "Short is good." in judge.prompt) == ("plan", True)
    assert judge.project.verify == ()
    assert ('letter="A"' in judge.prompt, 'letter="B"' in judge.prompt) == (True, True)
    assert shown(running, document).race.status == "judging"
    assert to_decide(running) == []
    drone.report(judge, drone.ended(response="B is shorter.\n\nTAKE B"))
    ((drone, service),) = begun(running, 1)
    assert (service.purpose, service.push and service.push.order) == ("push", document.orders[1].id)
    drone.report(service, Delivered(pushed=True), drone.ended())
    # A judgment without a choice leaves it to the user.
    document = race(running, pick="judge", count=2)
    for drone, order in begun(running, 2):
        ends(drone, order)
    ((drone, judge),) = begun(running, 1)
    drone.report(judge, drone.ended(response="Both are good."))
    running.until(lambda: shown(running, document).race.status == "undecided")
    assert [item.race for item in to_decide(running)] == [document.race.id]


def test_a_canceled_race_is_not_judged(running: Plane) -> None:
    document, judged = (race(running, pick="judge", count=2) for _ in range(2))
    taken = {order.order_id: (drone, order) for drone, order in begun(running, 4)}
    drone, done = taken[document.orders[0].id]
    ends(drone, done)
    running.until(lambda: running.order(done.order_id).ended_at)
    races.cancel(running.core, running.admin, document.race.id)
    drone, canceled = taken[document.orders[1].id]
    drone.report(canceled, drone.ended(status="preempted", exit_status="canceled"))
    running.until(lambda: shown(running, document).race.status == "undecided")
    for each in judged.orders:
        ends(*taken[each.id])
    running.until(lambda: shown(running, judged).race.judge)
    races.cancel(running.core, running.admin, judged.race.id)
    judge = shown(running, judged).race.judge
    assert judge is not None
    assert running.reaches(judge, "canceled")
    running.round()
    assert [shown(running, each).race.status for each in (document, judged)] == ["undecided"] * 2
    assert [shown(running, each).race.judge for each in (document, judged)] == [None, judge]


def test_an_order_that_is_taken_while_another_one_judges_ends_the_judgment(running: Plane) -> None:
    document = race(running, pick="judge", count=2)
    for drone, order in begun(running, 2):
        ends(drone, order)
    running.until(lambda: shown(running, document).race.judge)
    taken = document.orders[1].id
    races.take(running.core, running.admin, document.race.id, TakeRequest(order=taken))
    judge = shown(running, document).race.judge
    assert judge is not None
    assert running.reaches(judge, "canceled")
    assert shown(running, document).race.winner == taken


def test_a_race_whose_orders_have_ended_is_judged_also_before_there_is_a_judge(plane: Plane) -> None:
    plane.drone(concurrency=2)
    document = race(plane, pick="judge", count=2)
    for order in document.orders:
        place_queued(plane.core)
        end(plane.core, order.id, steps=(), head_commit=BASE)
    assert (shown(plane, document).race.status, shown(plane, document).race.judge) == ("judging", None)
    ask_judgments(plane.core)
    assert shown(plane, document).race.status == "judging"
    assert shown(plane, document).race.judge is not None


def test_a_provider_that_is_left_judges_and_without_any_a_user_does(plane: Plane) -> None:
    plane.drone(concurrency=2)
    for name in ("first", "second", "third"):
        providers.add(plane.core, plane.admin, ProviderRequest(name=name, model=f"openai/{name}"))
    cases = [(["first", "second"], ["first"], "second"), (["second", "third"], ["second", "third"], "scripted")]
    for models, removed, left in cases:
        document = ended(plane, count=None, models=models, pick="judge")
        for name in removed:
            providers.remove(plane.core, plane.admin, name)
        assert judge_of(plane, document) == left
    for name in ("fourth", "fifth"):
        providers.add(plane.core, plane.admin, ProviderRequest(name=name, model=f"openai/{name}"))
    document = ended(plane, count=2, provider="fourth", pick="judge")
    with plane.core.database.write() as db:
        db.query(Project).update({"provider_id": None})
    providers.remove(plane.core, plane.admin, "fourth")
    assert judge_of(plane, document) is None
    assert shown(plane, document).race.status == "undecided"


def test_a_race_whose_project_was_removed_is_not_judged(plane: Plane) -> None:
    plane.drone(concurrency=2)
    document = ended(plane, count=2, pick="judge")
    projects.remove(plane.core, plane.admin, "app")
    ask_judgments(plane.core)
    after = shown(plane, document).race
    assert (after.status, after.pick, after.judge) == ("undecided", "person", None)


def test_nothing_is_taken_of_a_race_whose_project_was_removed(plane: Plane) -> None:
    plane.drone(concurrency=2)
    document = ended(plane, count=2, pick="person")
    projects.remove(plane.core, plane.admin, "app")
    take = TakeRequest(order="A")
    assert code_of(lambda: races.take(plane.core, plane.admin, document.race.id, take)) == "E-PROJECT-REMOVED"
    assert shown(plane, document).race.winner is None


def ended(plane: Plane, **fields: Any) -> RaceDocument:
    """A race whose orders ended with work."""
    document = race(plane, **fields)
    for order in document.orders:
        place_queued(plane.core)
        end(plane.core, order.id, steps=(), head_commit=BASE, branch=branch(order.id))
    return document


def judge_of(plane: Plane, document: RaceDocument) -> str | None:
    """The provider of the order that judges, which has its own model; it ends without a choice."""
    ask_judgments(plane.core)
    judge = shown(plane, document).race.judge
    if judge is None:
        return None
    with plane.core.database.read() as db:
        order = db.get_one(Order, judge)
        provider = db.get_one(Provider, order.provider_id)
        assert order.model == provider.model
    place_queued(plane.core)
    end(plane.core, judge, steps=())
    return provider.name


def test_a_race_whose_winner_is_canceled_after_its_push_has_ended(running: Plane) -> None:
    document = race(running, count=2)
    (drone, order), (other, lost) = begun(running, 2)
    assert ask_push(running, drone, order)
    pushed = Delivered(branch=branch(order.order_id), base_commit=BASE, head_commit=head_of(order), pushed=True)
    drone.report(order, pushed)
    running.until(lambda: running.order(order.order_id).pushed)
    cancel(running.core, running.admin, order.order_id)
    for each, run in ((drone, order), (other, lost)):
        each.report(run, each.ended(status="preempted", exit_status="canceled"))
    running.reaches(order.order_id, "canceled")
    assert (shown(running, document).race.status, shown(running, document).race.outcome) == ("failed", "failed")


@pytest.mark.parametrize("pick", ["first", "person"])
def test_a_failed_order_that_was_taken_has_won(running: Plane, pick: str) -> None:
    document = race(running, count=2, pick=pick)
    for drone, order in begun(running, 2):
        ends(drone, order, status="failed", exit_status="cost_limit")
        running.until(lambda order=order: running.order(order.order_id).ended_at)
    assert shown(running, document).race.status == "undecided"
    races.take(running.core, running.admin, document.race.id, TakeRequest(order="A"))
    ((drone, service),) = begun(running, 1)
    assert shown(running, document).race.status == "running"
    drone.report(service, Delivered(pushed=True), drone.ended())
    running.until(lambda: running.order(document.orders[0].id).pushed)
    after = shown(running, document)
    assert (after.race.status, after.race.outcome, after.race.pick) == ("won", "incomplete", "person")
    late = TakeRequest(order="B")
    assert code_of(lambda: races.take(running.core, running.admin, document.race.id, late)) == "E-RACE-DECIDED"


def test_a_race_whose_winner_could_not_be_pushed_is_incomplete(running: Plane) -> None:
    first, taken = race(running, count=2), race(running, count=2, pick="person")
    runs = {order.order_id: (drone, order) for drone, order in begun(running, 4)}
    drone, order = runs[first.orders[0].id]
    assert ask_push(running, drone, order)
    refused: dict[str, Any] = {"pushed": False, "push_error": "the remote refused the branch"}
    work = {"branch": branch(order.order_id), "base_commit": BASE, "head_commit": head_of(order)}
    drone.report(order, Delivered(**work, **refused), drone.ended(verification=Verification.VERIFIED))
    drone, order = runs[first.orders[1].id]
    drone.report(order, drone.ended(status="preempted", exit_status="canceled"))
    for each in taken.orders:
        ends(*runs[each.id])
    running.until(lambda: shown(running, taken).race.status == "undecided")
    races.take(running.core, running.admin, taken.race.id, TakeRequest(order="A"))
    ((drone, service),) = begun(running, 1)
    drone.report(service, Delivered(**refused), drone.ended(status="failed", exit_status="error", order_at_fault=True))
    running.until(lambda: all(is_over(shown(running, each)) for each in (first, taken)))
    for each in (first, taken):
        after = shown(running, each)
        assert (after.race.status, after.race.outcome, followed(after)) == ("won", "incomplete", 1)


def test_the_judge_knows_the_orders_by_the_letters_of_the_race_also_if_the_first_one_failed(running: Plane) -> None:
    document = race(running, pick="judge")
    ids = [each.id for each in document.orders]
    (drone, failed), *others = sorted(begun(running), key=lambda each: ids.index(each[1].order_id))
    drone.report(failed, drone.ended(status="failed", exit_status="error"))
    for drone, order in others:
        ends(drone, order)
    ((drone, judge),) = begun(running, 1)
    assert re.findall('letter="(.)"|TAKE (.)$', judge.prompt) == [("B", ""), ("C", ""), ("", "B")]
    drone.report(judge, drone.ended(response="TAKE B"))
    assert running.until(lambda: shown(running, document).race.winner) == ids[1]


def test_models_race_with_their_own_providers_and_verified_work_wins_also_where_nothing_is_pushed(
    running: Plane,
) -> None:
    core, admin = running.core, running.admin
    providers.add(core, admin, ProviderRequest(name="second", model="openai/second", api_key="sk-2"))
    document = race(running, count=None, models=["scripted", "openai/second"])
    assert [order.provider for order in document.orders] == ["scripted", "second"]
    drone, order = begun(running, 2)[0]
    ends(drone, order)
    running.until(lambda: shown(running, document).race.winner == order.order_id)
    other = race(running, count=None, models=["scripted", "second"])
    races.cancel(core, admin, other.race.id)
    running.until(lambda: shown(running, other).race.status == "canceled")


def test_what_is_no_race_is_refused(running: Plane) -> None:
    """A race needs checks unless somebody decides, and budgets in which all of it has room."""
    running.drone("oka1", concurrency=1)
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"count": None}, "E-RACE-SIZE"),
        ({"count": 3, "models": ["scripted", "second"]}, "E-RACE-SIZE"),
        ({"count": None, "models": ["scripted"]}, "E-RACE-SIZE"),
        ({"count": None, "models": ["scripted", "scripted"]}, "E-RACE-SIZE"),
        ({"count": None, "models": ["scripted", "nothing"]}, "E-PROVIDER-404"),
        ({"session": "abc"}, "E-RACE-SESSION"),
        ({"rubric": "Short."}, "E-RACE-RUBRIC"),
        ({"drone": "oka1"}, "E-RACE-DRONES"),
    )
    codes = [code_of(lambda fields=fields: race(running, **fields)) for fields, _ in refused]
    assert codes == [code for _, code in refused]
    budgets.set_(running.core, running.admin, "project", "app", BudgetRequest(usd=5.0, per="day"))
    assert code_of(lambda: race(running)) == "E-RACE-BUDGET"
    with running.core.database.write() as db:
        db.query(Project).update({"verify": []})
    assert code_of(lambda: race(running, cost_limit=1.6)) == "E-RACE-VERIFY"
    assert running.rows(Order) == []
    assert race(running, cost_limit=0.8, pick="person").race.status == "running"
    assert race(running, cost_limit=0.8, verify=["make test"]).race.total == 3


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_race_is_read_as_it_is_at_one_moment(plane: Plane) -> None:
    plane.drone(concurrency=2)
    document = race(plane, pick="judge", count=2)
    for order in document.orders:
        place_queued(plane.core)
        end(plane.core, order.id, steps=(), head_commit=BASE, branch=branch(order.id))
    ask_judgments(plane.core)
    place_queued(plane.core)
    judge = shown(plane, document).race.judge
    assert judge is not None
    event.listen(OrderGroup, "load", lambda *_: end(plane.core, judge, steps=(), response="TAKE A"), once=True)
    assert shown(plane, document).race.status == "judging"
    assert shown(plane, document).race.status == "running"
