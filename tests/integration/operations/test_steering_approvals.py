"""Calls that wait for a person: the order stands still, the first answer counts, and the drone is told it once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from control_plane.db.drones import Drone
from control_plane.db.waits import Wait
from control_plane.documents.orders import ApproveRequest, DenyRequest, OrderSummary
from control_plane.operations.orders import reading, steering
from control_plane.operations.orders.canceling import cancel
from control_plane.orders.waits import WaitAnswer, answer
from shared import names
from shared.errors import Conflict, Forbidden, Invalid, NotFound
from shared.events import ApprovalStep, AssistantStep, ChildStep, DecisionStep, Receipt, ToolCallStep, Usage
from shared.reasons import Answered, AnswerOnItsWay, ForPerson
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

WHY = "Publishes commits: git push"


def running(plane: Plane, worker: DroneStandIn, **fields: Any) -> WorkOrder:
    """An order that runs on the drone."""
    worker.renew_lease()
    plane.submit(**fields)
    order = plane.until(worker.take)
    assert worker.claim(order)
    worker.report(order, worker.started())
    plane.until(lambda: plane.status(order.order_id) == "running")
    return order


def ask(plane: Plane, drone: DroneStandIn, order: WorkOrder, call: str = "c1", command: str = "git push") -> None:
    """The run asks for a call, and the order waits."""
    called = ToolCallStep(call_id=call, tool="shell", arguments={"command": command})
    drone.report(order, called, ApprovalStep(call_id=call, tool="shell", why=WHY))
    # The call itself is stored before it, perhaps alone, and the order may wait for another call already.
    plane.until(lambda: call in asked(plane, order))
    plane.until(lambda: plane.status(order.order_id) == "awaiting_approval")


def asked(plane: Plane, order: WorkOrder) -> set[str]:
    """The calls for which the order asked for approval so far."""
    steps = [step.model_dump() for step in plane.order(order.order_id).steps]
    return {step["call_id"] for step in steps if step["kind"] == "approval"}


def approve(plane: Plane, order: WorkOrder, **fields: Any) -> OrderSummary:
    return steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest(**fields))


def deny(plane: Plane, order: WorkOrder, **fields: Any) -> OrderSummary:
    return steering.deny(plane.core, plane.admin, order.order_id, DenyRequest(**fields))


def told(drone: DroneStandIn) -> list[tuple[str, bool, str]]:
    bodies = [message.body for message in drone.told("decide")]
    return sorted((body.call_id, body.approved, body.comment) for body in bodies)


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    return drone


def test_an_approval_is_told_to_the_drone_and_the_order_goes_on_when_the_run_does(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = running(plane, oka)
    with pytest.raises(Conflict):
        approve(plane, order)
    ask(plane, oka, order)
    found = plane.order(order.order_id)
    assert found.waiting_for is not None
    assert (found.waiting_for.call_id, found.waiting_for.tool, found.waiting_for.why) == ("c1", "shell", WHY)
    assert plane.facts(order.order_id).waits == ForPerson(order=order.order_id, tool="shell", why=WHY)
    listed = reading.list_orders(plane.core, plane.admin, status="awaiting_approval")
    assert [each.waiting_for for each in listed] == [found.waiting_for]
    with pytest.raises(NotFound) as unknown:
        approve(plane, order, call="c9")
    assert unknown.value.why == "waiting: c1"
    approve(plane, order, comment="go")
    assert plane.facts(order.order_id).waits == AnswerOnItsWay(by="system", approved=True, tool="shell")
    plane.until(lambda: told(oka) == [("c1", True, "go")])
    oka.report(order, DecisionStep(call_id="c1", approved=True))
    found = plane.until(lambda: (o := plane.order(order.order_id)).status == "running" and o)
    assert found.waiting_for is None
    assert plane.facts(order.order_id).waits == Answered(by="person", approved=True)


def test_the_first_decision_counts_and_the_second_names_it(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    ask(plane, oka, order)
    deny(plane, order, comment="not on main")
    calls: tuple[dict[str, str], ...] = ({}, {"call": "c1"})
    for call in calls:
        with pytest.raises(Conflict, match="'c1' was already denied"):
            approve(plane, order, **call)
    plane.until(lambda: told(oka) == [("c1", False, "not on main")])
    # Also what the clock decided cannot be decided again.
    ask(plane, oka, order, "c2")
    oka.report(
        order, DecisionStep(call_id="c1", approved=False), DecisionStep(call_id="c2", approved=False, by="clock")
    )
    plane.until(lambda: plane.status(order.order_id) == "running")
    assert plane.facts(order.order_id).waits == Answered(by="clock")
    with pytest.raises(Conflict, match="already denied automatically"):
        approve(plane, order, call="c2")


def test_of_two_calls_that_wait_the_first_is_meant_unless_one_is_named(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    ask(plane, oka, order, "c1")
    ask(plane, oka, order, "c2")
    deny(plane, order, call="c2")
    approve(plane, order)
    plane.until(lambda: told(oka) == [("c1", True, ""), ("c2", False, "")])
    oka.report(order, DecisionStep(call_id="c1", approved=True))
    plane.until(lambda: (w := plane.order(order.order_id).waiting_for) and w.call_id == "c2")
    assert plane.order(order.order_id).status == "awaiting_approval"
    oka.report(order, DecisionStep(call_id="c2", approved=False))
    plane.until(lambda: plane.status(order.order_id) == "running")


def test_always_lets_the_same_command_through_in_later_orders_of_the_session(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka, approve="risky", allow=["git status*"])
    edits = ToolCallStep(call_id="c0", tool="editor", arguments={"command": "insert", "path": "x"})
    oka.report(order, edits, ApprovalStep(call_id="c0", tool="editor", why="it changes files"))
    plane.until(lambda: plane.status(order.order_id) == "awaiting_approval")
    with pytest.raises(Invalid):
        approve(plane, order, call="c0", always=True)
    ask(plane, oka, order, command="git push origin feature-*")
    approve(plane, order, call="c1", always=True)
    inner = ToolCallStep(call_id="c7", tool="shell", arguments={"command": "rm old.txt"})
    child = ChildStep(call_id="c2", step=inner.model_dump(mode="json"))
    oka.report(order, child, ApprovalStep(call_id="c7", tool="shell", why="Deletes files"))
    plane.until(lambda: "c7" in asked(plane, order))
    approve(plane, order, call="c7", always=True)
    oka.report(order, oka.ended())
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    later = plane.order(plane.submit(session=plane.order(order.order_id).session))
    # The star that was in the command stands for a star, and for nothing else.
    assert later.allow == ["git status*", "git push origin feature-[*]", "rm old.txt"]
    assert later.approve == "risky"


def test_an_order_that_waits_can_be_canceled_and_its_decision_comes_too_late(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    ask(plane, oka, order)
    assert cancel(plane.core, plane.admin, order.order_id).status == "canceling"
    with pytest.raises(Conflict, match="the order is canceling"):
        approve(plane, order)
    receipt = Receipt(at=plane.core.clock.now())
    oka.report(order, DecisionStep(call_id="c1", approved=False, by="interruption"))
    oka.report(order, oka.ended(status="preempted", exit_status="canceled", receipt=receipt))
    plane.until(lambda: plane.status(order.order_id) == "canceled")


def test_a_run_that_ends_while_its_order_waits_ends_the_order(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    ask(plane, oka, order)
    ended = {"status": "failed", "exit_status": "time_limit", "reason": "the time is up", "verification": "not_reached"}
    oka.report(order, oka.ended(**ended))
    found = plane.until(lambda: (o := plane.order(order.order_id)).status == "failed" and o)
    assert (found.exit_status, found.waiting_for, found.verification) == ("time_limit", None, "not_reached")
    assert [wait.closed_at is not None for wait in plane.rows(Wait)] == [True]


def test_the_waiting_run_of_a_silent_drone_is_lost_and_the_next_one_asks_anew(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor(lost_after=0.5)
    order = running(plane, drone, drone=drone.name)
    ask(plane, drone, order)
    plane.core.broker.redis.delete(names.lease_key(drone.id))
    plane.edit(Drone, drone.id, last_seen_at=plane.core.clock.now() - timedelta(minutes=5))
    found = plane.until(lambda: (o := plane.order(order.order_id)).generation == 2 and o)
    assert (found.runs[0].status, found.waiting_for) == ("lost", None)
    with pytest.raises(Conflict, match="is waiting for approval"):
        approve(plane, order)


def test_what_a_late_run_asks_does_not_move_the_order(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    oka.restart()
    plane.until(lambda: plane.order(order.order_id).generation == 2)
    oka.report(order, ApprovalStep(call_id="c1", tool="shell", why=WHY))
    plane.until(lambda: any(step.kind == "approval" for step in plane.order(order.order_id).steps))
    assert plane.order(order.order_id).status == "assigned"


def test_what_a_child_spends_and_calls_is_counted(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    said = AssistantStep(text="x", usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.25))
    called = ToolCallStep(call_id="k1", tool="shell", arguments={"command": "ls"})
    children = [ChildStep(call_id="c1", step=body.model_dump(mode="json")) for body in (said, called, said)]
    oka.report(order, *children)
    stats = plane.until(lambda: (s := plane.order(order.order_id).stats).input_tokens == 20 and s)
    assert (stats.tool_calls, stats.output_tokens, stats.cost_usd) == (1, 10, 0.5)
    # An answer that cannot be read makes the cost unknown.
    oka.report(order, ChildStep(call_id="c1", step={"kind": "assistant", "usage": "much"}))
    plane.until(lambda: plane.order(order.order_id).stats.cost_usd is None)


@pytest.mark.dialects
def test_of_two_answers_at_once_the_first_counts(any_plane: Plane) -> None:
    drone, core = any_plane.drone(), any_plane.core
    any_plane.collector(), any_plane.supervisor()
    ask(any_plane, drone, running(any_plane, drone))
    (seen,) = any_plane.rows(Wait)
    with core.database.write() as db:
        assert answer(db, core, seen, WaitAnswer("approve", "kim"))
    with core.database.write() as db:
        assert not answer(db, core, seen, WaitAnswer("deny", "ann"))
    (wait,) = any_plane.rows(Wait)
    assert (wait.answer, wait.answered_by, wait.decided_by) == ("approve", "kim", "person")


def test_who_may_answer_is_a_fact_of_what_is_asked(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    ask(plane, oka, order)
    with plane.core.database.write() as db:
        db.execute(update(Wait).values(role="admin"))
    operator = replace(plane.admin, role="operator")
    with pytest.raises(Forbidden):
        steering.approve(plane.core, operator, order.order_id, ApproveRequest())
    assert approve(plane, order).status == "awaiting_approval"


def test_what_an_older_collector_stored_as_a_step_alone_can_be_answered(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    ask(plane, oka, order)
    with plane.core.database.write() as db:
        db.execute(delete(Wait))
    plane.until(lambda: (w := plane.order(order.order_id).waiting_for) and w.call_id == "c1")
    approve(plane, order)
    plane.until(lambda: told(oka) == [("c1", True, "")])
