"""A run that waits for a person gives up its slot while others need it, and its order continues once it is answered."""

from __future__ import annotations

import pytest

from control_plane.contract.declarations.steering import AnswerRequest, ApproveRequest, DenyRequest, SayRequest
from control_plane.db.waits import Wait
from control_plane.operations.orders import steering
from control_plane.operations.orders.answering import answer_order
from control_plane.operations.orders.canceling import cancel
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
from shared.reasons import Answered, CanceledEnd, Continued
from shared.work_order import WorkOrder
from tests.support.going_on import BASE, NOTE, checkpoint, go, seen
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

AFTER = 300.0
CALLS = tuple(ToolCall(id=f"c{n}", name="shell", arguments='{"command": "git push"}') for n in range(3))
APPROVAL = ApprovalStep(call_id="c1", tool="shell", why="Publishes commits: git push", command="git push")
QUESTION = ApprovalStep(about="question", call_id="c1", tool="ask", why="Which?", default="SQLite")


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    """A drone with one slot, of a fleet that runs."""
    drone = plane.drone(concurrency=1)
    plane.collector(), plane.supervisor()
    return drone


def asks(plane: Plane, drone: DroneStandIn, step: ApprovalStep = APPROVAL) -> WorkOrder:
    """An order whose run waits at the second of its three calls."""
    plane.submit(drone=drone.name)
    order = go(drone)
    first = ToolResultStep(call_id="c0", output="pushed", return_code=0)
    drone.report(order, AssistantStep(text="I push.", tool_calls=CALLS), first, step)
    plane.reaches(order.order_id, "awaiting_approval")
    return order


def suspended(plane: Plane, drone: DroneStandIn, step: ApprovalStep = APPROVAL) -> WorkOrder:
    """The same once its run has ended, at a checkpoint within its step."""
    order = asks(plane, drone, step)
    ended = drone.ended(status="preempted", exit_status="canceled", reason="suspended", give_back=True, suspended=True)
    drone.report(order, checkpoint("", commit="", bundle_sha256=None), ended)
    plane.until(lambda: plane.order(order.order_id).runs[0].status == "preempted")
    return order


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
    runs = [(oka, asks(plane, oka)), *((two, asks(plane, two)) for _ in range(2))]
    runs += [(hidden, asks(plane, hidden, secret))]
    plane.core.clock.sleep(AFTER)
    drones = (oka, two, hidden)
    for drone in drones:
        drone.beat(*(drone.run_beat(order) for holder, order in runs if holder is drone))
    plane.round()
    assert suspend_long_waits(plane.core, AFTER) == []
    for drone in drones:
        assert plane.reaches(plane.submit(drone=drone.name), "assigned").drone == drone.name
    assert suspend_long_waits(plane.core, 2 * AFTER) == []
    asked = [runs[0][1].run_id, runs[1][1].run_id]
    assert suspend_long_waits(plane.core, AFTER) == asked
    # One slot is needed, and about to be free.
    assert suspend_long_waits(plane.core, AFTER) == []
    messages = plane.until(lambda: [message for drone in drones for message in drone.told("suspend")])
    assert [(message.body.run_id, message.body.call_id) for message in messages] == [(run_id, "c1") for run_id in asked]


def test_a_suspended_order_holds_no_slot_and_continues_with_the_open_calls_and_the_answer(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = suspended(plane, oka)
    kept = plane.order(order.order_id)
    assert (kept.status, kept.drone, kept.waiting_for is not None) == ("awaiting_approval", None, True)
    plane.submit()
    other = oka.taken()
    oka.report(other, oka.started(), oka.ended())
    plane.reaches(other.order_id, "succeeded")

    steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest(comment="go"))
    again = goes_on(oka)
    assert (again.order_id, again.resumed is not None and not again.resumed.cut_off) == (order.order_id, True)
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
    until = plane.core.clock.now().replace(microsecond=0)

    def answered(order: WorkOrder) -> None:
        answer_order(plane.core, plane.admin, order.order_id, AnswerRequest(text="MySQL"))

    def denied(order: WorkOrder) -> None:
        steering.deny(plane.core, plane.admin, order.order_id, DenyRequest(comment="use make"))

    def interrupted(order: WorkOrder) -> None:
        steering.say(plane.core, plane.admin, order.order_id, SayRequest(text="Stop that.", interrupt=True))

    def nothing(_: WorkOrder) -> None:
        """The deadline has passed."""

    late = {"until": until}
    cases = [
        (QUESTION, answered, (True, "MySQL", True), ("person", True)),
        (APPROVAL, denied, (False, "use make", True), ("person", False)),
        (APPROVAL, interrupted, (False, "a message came instead of an answer", True), ("interruption", False)),
        (QUESTION, interrupted, (False, "a message came instead of an answer", False), ("interruption", False)),
        (APPROVAL.model_copy(update=late), nothing, (False, "", False), ("clock", False)),
        (QUESTION.model_copy(update=late), nothing, (False, "SQLite", False), ("clock", True)),
    ]
    wrong = {}
    for number, (step, act, decision, (by, approved)) in enumerate(cases):
        order = suspended(plane, oka, step)
        act(order)
        continue_answered(plane.core)
        because = plane.facts(order.order_id).returned
        again = goes_on(oka)
        oka.report(again, step)
        plane.until(lambda run=again: told(oka, run))
        answered_by = Answered(about=step.about, by=by, approved=approved)
        if (told(oka, again), isinstance(because, Continued) and because.answered) != ([decision], answered_by):
            wrong[number] = told(oka, again), because
        oka.report(again, DecisionStep(call_id="c1", approved=approved), oka.ended())
        plane.reaches(order.order_id, "succeeded")
    assert wrong == {}


def test_a_suspended_order_is_canceled_at_once_and_its_wait_is_over(plane: Plane, oka: DroneStandIn) -> None:
    order = suspended(plane, oka)
    done = cancel(plane.core, plane.admin, order.order_id)
    assert (done.status, open_waits_of(plane)) == ("canceled", [])
    assert plane.facts(order.order_id).ended == CanceledEnd(code="with_receipt")
    plane.pass_time(3)
    assert oka.told("cancel") == []


def test_what_was_approved_for_a_run_that_is_lost_is_asked_again(plane: Plane, oka: DroneStandIn) -> None:
    """It may have been carried out already."""
    order = asks(plane, oka)
    steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest())
    plane.until(lambda: told(oka, order))
    oka.restart()
    again = oka.taken()
    oka.report(again, oka.started(), APPROVAL)
    plane.until(lambda: plane.order(order.order_id).waiting_for)
    assert (plane.status(order.order_id), told(oka, again)) == ("awaiting_approval", [])
