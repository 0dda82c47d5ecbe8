"""A run that waits for a person gives up its slot while others need it, and its order continues once it is answered."""

from __future__ import annotations

from datetime import timedelta

import pytest

from control_plane.contract.declarations.orders import ResumeRequest
from control_plane.contract.declarations.plans import ApprovePlanRequest, EditPlanRequest
from control_plane.contract.declarations.steering import AnswerRequest, ApproveRequest, DenyRequest, SayRequest
from control_plane.db.orders import Order
from control_plane.db.waits import Wait
from control_plane.operations.orders import retrying, steering
from control_plane.operations.orders.answering import answer_order
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.planning import approve_plan, edit_plan
from control_plane.orders.plan_waits import edit_of
from control_plane.supervisor.suspending import continue_answered, suspend_long_waits
from shared.events import (
    ApprovalStep,
    AssistantStep,
    DecisionStep,
    Prepared,
    ResumedStep,
    ToolResultStep,
    UserStep,
)
from shared.messages import ToolCall
from shared.plan_text import plan_text
from shared.plans import AgentPlan, PlanPoint
from shared.reasons import Answered, CanceledEnd, Continued, RunEnd
from shared.work_order import WorkOrder
from tests.support.going_on import BASE, NOTE, checkpoint, go, seen
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

AFTER = 300.0
CALLS = tuple(ToolCall(id=f"c{n}", name="shell", arguments='{"command": "git push"}') for n in range(3))
APPROVAL = ApprovalStep(call_id="c1", tool="shell", why="Publishes commits: git push", command="git push")
QUESTION = ApprovalStep(about="question", call_id="c1", tool="ask", why="Which?", default="SQLite")
BUDGET = ApprovalStep(about="budget", call_id="money-1", tool="model call", why="A budget is used up")


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    """A drone with one slot, of a fleet that runs."""
    drone = plane.drone(concurrency=1)
    plane.collector(), plane.supervisor()
    return drone


def asks(plane: Plane, drone: DroneStandIn, *steps: ApprovalStep) -> list[WorkOrder]:
    """Orders whose runs wait at the second of their three calls, one for each of these steps."""
    ids = [plane.submit(drone=drone.name) for _ in steps]
    orders = sorted((go(drone) for _ in steps), key=lambda order: ids.index(order.order_id))
    for order, step in zip(orders, steps, strict=True):
        first = ToolResultStep(call_id="c0", output="pushed", return_code=0)
        drone.report(order, AssistantStep(text="I push.", tool_calls=CALLS), first, step)
    plane.until(lambda: {plane.status(each) for each in ids} == {"awaiting_approval"})
    return orders


def suspended(plane: Plane, drone: DroneStandIn, *steps: ApprovalStep) -> list[WorkOrder]:
    """The same once their runs have ended, at a checkpoint within their step."""
    orders = asks(plane, drone, *steps)
    ended = drone.ended(status="preempted", exit_status="canceled", reason="suspended", give_back=True, suspended=True)
    for order in orders:
        drone.report(order, checkpoint("", commit="", bundle_sha256=None), ended)
    plane.until(lambda: {plane.order(order.order_id).runs[0].status for order in orders} == {"preempted"})
    return orders


def goes_on(drone: DroneStandIn) -> WorkOrder:
    """The next run of a suspended order, up to where it was."""
    order = drone.taken()
    assert order.resumed is not None
    resumed = {name: getattr(order.resumed, name) for name in ("run_id", "seq", "commit", "cut_off", "why")}
    drone.report(order, drone.started(), Prepared(base_commit=BASE), ResumedStep.model_validate(resumed))
    return order


def open_waits_of(plane: Plane) -> list[Wait]:
    return plane.rows(Wait, Wait.closed_at.is_(None))


def told(drone: DroneStandIn, order: WorkOrder) -> list[tuple[bool, str, bool]]:
    """The decisions that a run was told: whether it is approved, the answer or comment, and whether it was in time."""
    bodies = [message.body for message in drone.told("decide") if message.body.run_id == order.run_id]
    return [(body.approved, body.answer or body.comment, body.in_time) for body in bodies]


def test_runs_are_asked_to_end_after_five_minutes_and_only_as_many_as_other_orders_need(
    plane: Plane, oka: DroneStandIn
) -> None:
    two, hidden = (plane.drone(name, concurrency=slots) for name, slots in (("two", 2), ("mila", 1)))
    secret = APPROVAL.model_copy(update={"about": "secret"})
    waiting = {"oka": asks(plane, oka, APPROVAL), "two": asks(plane, two, APPROVAL, APPROVAL)}
    waiting["mila"] = asks(plane, hidden, secret)
    plane.core.clock.sleep(AFTER)
    drones = (oka, two, hidden)
    for drone in drones:
        drone.beat(*map(drone.run_beat, waiting[drone.name]))
    plane.round()
    assert suspend_long_waits(plane.core, AFTER) == []
    for drone in drones:
        assert plane.reaches(plane.submit(drone=drone.name), "assigned").drone == drone.name
    assert suspend_long_waits(plane.core, 2 * AFTER) == []
    asked = [waiting[name][0].run_id for name in ("oka", "two")]
    assert suspend_long_waits(plane.core, AFTER) == asked
    # One slot is needed, and about to be free.
    assert suspend_long_waits(plane.core, AFTER) == []
    messages = plane.until(lambda: [message for drone in drones for message in drone.told("suspend")])
    assert [(message.body.run_id, message.body.call_id) for message in messages] == [(run_id, "c1") for run_id in asked]


def test_a_suspended_order_holds_no_slot_and_continues_with_the_open_calls_and_the_answer(
    plane: Plane, oka: DroneStandIn
) -> None:
    (order,) = suspended(plane, oka, APPROVAL)
    kept = plane.order(order.order_id)
    assert (kept.status, kept.drone, kept.waiting_for is not None) == ("awaiting_approval", None, True)
    plane.submit()
    other = oka.taken()
    oka.report(other, oka.started(), oka.ended())
    plane.reaches(other.order_id, "succeeded")

    steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest(comment="go"))
    again = goes_on(oka)
    assert (again.order_id, again.resumed is not None and not again.resumed.cut_off) == (order.order_id, True)
    # It was given back, which is no failure.
    assert (again.generation, again.attempt, plane.rows(Order, Order.id == again.order_id)[0].lost_runs) == (2, 2, 0)
    assert seen(again) == ["do it", "I push.", "pushed"]
    assert [call.id for call in again.context[1].tool_calls] == ["c0", "c1", "c2"]
    oka.report(again, APPROVAL)
    plane.until(lambda: told(oka, again))
    assert told(oka, again) == [(True, "go", True)]
    results = [ToolResultStep(call_id=call.id, output=f"{call.id} done") for call in CALLS[1:]]
    oka.report(again, DecisionStep(call_id="c1", approved=True), *results, UserStep(text=NOTE, source="loop"))
    oka.report(again, AssistantStep(text="Done."), oka.ended())
    plane.reaches(order.order_id, "succeeded")
    assert open_waits_of(plane) == []

    plane.submit("And now?", session=plane.order(order.order_id).session)
    # The calls and their results, which two runs reported, are one conversation for the next turn.
    assert seen(oka.taken()) == ["do it", "I push.", "pushed", "c1 done", "c2 done", NOTE, "Done."]


def test_a_suspended_wait_ends_by_an_answer_the_clock_or_a_message_that_interrupts(
    plane: Plane, oka: DroneStandIn
) -> None:
    core, admin, drone = plane.core, plane.admin, plane.drone("many", concurrency=6)
    late = {"until": core.clock.now().replace(microsecond=0)}
    steps = (QUESTION, APPROVAL, APPROVAL, QUESTION, *(step.model_copy(update=late) for step in (APPROVAL, QUESTION)))
    expected = [
        ((True, "MySQL", True), ("person", True)),
        ((False, "use make", True), ("person", False)),
        ((False, "a message came instead of an answer", True), ("interruption", False)),
        ((False, "a message came instead of an answer", False), ("interruption", False)),
        ((False, "", False), ("clock", False)),
        ((False, "SQLite", False), ("clock", True)),
    ]
    orders = suspended(plane, drone, *steps)
    answered, denied, *interrupted = (order.order_id for order in orders[:4])
    answer_order(core, admin, answered, AnswerRequest(text="MySQL"))
    steering.deny(core, admin, denied, DenyRequest(comment="use make"))
    for order_id in interrupted:
        steering.say(core, admin, order_id, SayRequest(text="Stop that.", interrupt=True))
    continue_answered(core)
    reasons = [plane.facts(order.order_id).returned for order in orders]
    again = {run.order_id: run for run in (goes_on(drone) for _ in orders)}
    for order, step in zip(orders, steps, strict=True):
        drone.report(again[order.order_id], step)
    plane.until(lambda: all(told(drone, run) for run in again.values()))
    assert [told(drone, again[order.order_id]) for order in orders] == [[decision] for decision, _ in expected]
    assert [because.answered for because in reasons if isinstance(because, Continued)] == [
        Answered(about=step.about, by=by, approved=approved)
        for step, (_, (by, approved)) in zip(steps, expected, strict=True)
    ]
    # An end tells of the message that its run has not heard.
    order_id = interrupted[0]
    drone.report(again[order_id], DecisionStep(call_id="c1", approved=False), drone.ended())
    plane.reaches(order_id, "succeeded")
    ended = plane.facts(order_id).ended
    assert isinstance(ended, RunEnd)
    assert ended.unheard == 1


def test_what_users_did_about_a_request_stays_if_its_run_declines_to_be_suspended_and_asks_again(
    plane: Plane, oka: DroneStandIn
) -> None:
    core, admin = plane.core, plane.admin
    presented = AgentPlan(title="Rename add", points=(PlanPoint(text="Rename the function"),))
    step = ApprovalStep(about="plan", call_id="plan-1", tool="present_plan", why="Rename add", plan=presented)
    (order,) = asks(plane, oka, step)
    plane.edit(Order, order.order_id, plan_first=True)
    edited = presented.model_copy(update={"title": "Rename add to plus"})
    edit_plan(core, admin, order.order_id, EditPlanRequest(text=plan_text(edited)))
    oka.report(order, step)
    plane.pass_time(1)
    approve_plan(core, admin, order.order_id, ApprovePlanRequest())
    oka.report(order, step)
    plane.pass_time(1)
    (wait,) = open_waits_of(plane)
    assert (edit_of(wait).revision, wait.answer, wait.answered_by) == (1, "approve", admin.user)
    assert [message.body.plan for message in oka.told("decide")] == [edited]


def test_a_plan_that_no_one_answered_in_time_is_presented_again_after_a_resume_with_its_edits(
    plane: Plane, oka: DroneStandIn
) -> None:
    core, admin = plane.core, plane.admin
    presented = AgentPlan(title="Rename add", points=(PlanPoint(text="Rename the function"),))
    step = ApprovalStep(about="plan", call_id="plan-1", tool="present_plan", why="Rename add", plan=presented)
    (order,) = suspended(plane, oka, step.model_copy(update={"until": core.clock.now() + timedelta(hours=1)}))
    plane.edit(Order, order.order_id, plan_first=True)
    text = plan_text(presented.model_copy(update={"title": "Rename add to plus"}))
    edit_plan(core, admin, order.order_id, EditPlanRequest(text=text))
    core.clock.sleep(3600)
    assert continue_answered(core) == [order.order_id]
    again = goes_on(oka)
    oka.report(again, step)
    plane.until(lambda: told(oka, again))
    assert told(oka, again) == [(False, "", False)]
    decided = DecisionStep(about="plan", call_id="plan-1", approved=False, by="clock")
    oka.report(again, decided, oka.ended(status="failed", exit_status="plan_unanswered"))
    plane.reaches(order.order_id, "failed")

    retrying.resume(core, admin, order.order_id, ResumeRequest())
    third = oka.taken()
    oka.report(third, oka.started(), step)
    plane.reaches(order.order_id, "awaiting_approval")
    (wait,) = open_waits_of(plane)
    assert (wait.answer, edit_of(wait).plan.title, told(oka, third)) == (None, "Rename add to plus", [])


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(hours=-3)], ids=["ahead", "behind"])
def test_a_suspended_wait_lasts_as_long_as_its_run_would_have_waited_on_a_drone_whose_clock_is_off(
    plane: Plane, oka: DroneStandIn, ahead: timedelta
) -> None:
    oka.ahead = ahead
    until = plane.core.clock.now() + ahead + timedelta(hours=1)
    (order,) = suspended(plane, oka, APPROVAL.model_copy(update={"until": until}))
    plane.core.clock.sleep(3000)
    assert (continue_answered(plane.core), plane.status(order.order_id)) == ([], "awaiting_approval")
    plane.core.clock.sleep(900)
    assert continue_answered(plane.core) == [order.order_id]


def test_a_suspended_order_is_canceled_at_once_and_its_wait_is_over(plane: Plane, oka: DroneStandIn) -> None:
    (order,) = suspended(plane, oka, APPROVAL)
    done = cancel(plane.core, plane.admin, order.order_id)
    assert (done.status, open_waits_of(plane)) == ("canceled", [])
    assert plane.facts(order.order_id).ended == CanceledEnd(code="with_receipt")
    plane.pass_time(1)
    assert oka.told("cancel") == []


def test_what_was_approved_for_a_run_that_is_lost_is_asked_again(plane: Plane, oka: DroneStandIn) -> None:
    # It may have been carried out already.
    (order,) = asks(plane, oka, APPROVAL)
    steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest())
    plane.until(lambda: told(oka, order))
    oka.restart()
    again = oka.taken()
    oka.report(again, oka.started(), APPROVAL)
    plane.until(lambda: plane.order(order.order_id).waiting_for)
    assert (plane.status(order.order_id), told(oka, again)) == ("awaiting_approval", [])


@pytest.mark.parametrize("step", [APPROVAL, BUDGET], ids=["approval", "budget"])
def test_a_decision_is_carried_over_once_and_asked_again_after_the_run_that_got_it_is_lost(
    plane: Plane, oka: DroneStandIn, step: ApprovalStep
) -> None:
    (order,) = suspended(plane, oka, step)
    steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest())
    second = goes_on(oka)
    oka.report(second, step)
    plane.until(lambda: told(oka, second))
    oka.report(second, DecisionStep(about=step.about, call_id=step.call_id, approved=True))
    plane.reaches(order.order_id, "running")
    oka.restart()
    third = oka.taken()
    oka.report(third, oka.started(), step)
    plane.until(lambda: plane.order(order.order_id).waiting_for)
    assert (told(oka, second), told(oka, third)) == ([(True, "", True)], [])


@pytest.mark.parametrize("finish", [False, True])
def test_a_denial_at_a_limit_counts_for_the_next_run_also_if_its_amounts_are_others(
    plane: Plane, oka: DroneStandIn, finish: bool
) -> None:
    limit = BUDGET.model_copy(update={"about": "limit", "why": "0.9000 of 1.00 USD spent, and 0.2717 may follow"})
    (order,) = suspended(plane, oka, limit)
    steering.deny(plane.core, plane.admin, order.order_id, DenyRequest(finish=finish))
    again = goes_on(oka)
    oka.report(again, limit.model_copy(update={"why": "0.9000 of 1.00 USD spent, and 0.0602 may follow"}))
    plane.until(lambda: told(oka, again))
    decided = [message.body for message in oka.told("decide") if message.body.run_id == again.run_id]
    assert [(body.approved, body.finish) for body in decided] == [(False, finish)]


def test_a_decision_at_a_limit_does_not_count_for_what_the_next_run_asks_later(plane: Plane, oka: DroneStandIn) -> None:
    (order,) = suspended(plane, oka, BUDGET)
    steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest())
    again = goes_on(oka)
    oka.report(again, BUDGET, DecisionStep(about="budget", call_id="money-1", approved=True))
    oka.report(again, BUDGET.model_copy(update={"call_id": "money-2"}))
    plane.until(lambda: [wait.subject for wait in open_waits_of(plane)] == ["money-2"])
    assert (plane.status(order.order_id), told(oka, again)) == ("awaiting_approval", [(True, "", True)])
