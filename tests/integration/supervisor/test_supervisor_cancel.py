"""Canceling an order wherever it is; it ends with a receipt."""

from __future__ import annotations

from datetime import timedelta

from control_plane.contract.declarations.orders import CancelRequest
from control_plane.db.drones import Drone
from control_plane.db.orders import Order, Turn
from control_plane.operations.orders.canceling import cancel
from control_plane.supervisor.placing import place_queued
from shared import names
from shared.events import Receipt
from shared.reasons import CancelAsked, CanceledEnd
from tests.support.broker import BrokerServer
from tests.support.planes import Plane
from tests.support.refusals import code_of
from tests.support.stand_in import DroneStandIn

KNOWN = CancelAsked(by="system")
BEFORE_START = CanceledEnd(code="before_start")


def test_a_queued_order_is_canceled_at_once_and_once_and_one_that_ended_cannot_be(plane: Plane) -> None:
    order_id = plane.submit()
    done = cancel(plane.core, plane.admin, order_id, CancelRequest(reason="not needed"))
    assert (done.status, done.exit_status) == ("canceled", "canceled")
    facts = plane.facts(order_id)
    assert (facts.cancel, facts.ended) == (KNOWN.model_copy(update={"text": "not needed"}), BEFORE_START)
    assert done.receipt is not None
    assert done.receipt["survivors"] == 0
    assert cancel(plane.core, plane.admin, order_id, CancelRequest(reason="two")) == done
    ended = plane.submit()
    plane.edit(Order, ended, status="succeeded", ended_at=plane.core.clock.now())
    assert code_of(lambda: cancel(plane.core, plane.admin, ended)) == "E-ORDER-STATE"


def test_an_order_in_the_queue_of_a_drone_is_canceled_at_once_and_a_running_one_when_its_receipt_comes(
    running: Plane, oka: DroneStandIn
) -> None:
    running.submit()
    waiting = running.until(oka.take)
    assert cancel(running.core, running.admin, waiting.order_id).status == "canceled"
    assert oka.claim(waiting) is False

    order = running.begun(oka)
    asked = cancel(running.core, running.admin, order.order_id, CancelRequest(reason="wrong branch"))
    assert (asked.status, asked.receipt) == ("canceling", None)
    assert running.key(oka, order.run_id) == "revoked:1"
    message = running.until(lambda: oka.told("cancel"))[0].body
    assert (message.run_id, message.generation) == (order.run_id, 1)
    receipt = Receipt(found=3, ended=3, at=running.core.clock.now())
    oka.report(order, oka.ended(status="preempted", exit_status="canceled", receipt=receipt))
    done = running.reaches(order.order_id, "canceled")
    assert done.receipt is not None
    assert (done.receipt["found"], done.receipt["survivors"]) == (3, 0)
    assert running.facts(order.order_id).cancel == KNOWN.model_copy(update={"text": "wrong branch"})
    assert done.runs[0].status == "preempted"


def test_a_run_that_ends_while_it_is_being_canceled_keeps_its_work(running: Plane, oka: DroneStandIn) -> None:
    order = running.begun(oka)
    cancel(running.core, running.admin, order.order_id)
    oka.report(order, oka.ended(response="all done"))
    assert running.reaches(order.order_id, "canceled").response == "all done"
    assert running.facts(order.order_id).ended == CanceledEnd(code="after_end", detail="the model stopped")


def test_a_drone_that_cannot_be_reached_makes_the_receipt_say_so_and_sends_it_when_it_returns(
    plane: Plane, oka: DroneStandIn
) -> None:
    plane.collector(), plane.supervisor(lost_after=0.5)
    order = plane.begun(oka)
    cancel(plane.core, plane.admin, order.order_id)
    plane.core.broker.redis.delete(names.lease_key(oka.id))
    plane.edit(Drone, oka.id, last_seen_at=plane.core.clock.now() - timedelta(minutes=5))
    done = plane.reaches(order.order_id, "canceled")
    assert (done.receipt or {})["unreachable_since"] is not None
    receipt = Receipt(found=2, ended=2, at=plane.core.clock.now())
    oka.report(order, oka.ended(status="preempted", exit_status="canceled", receipt=receipt))
    plane.until(lambda: (plane.order(order.order_id).receipt or {})["found"] == 2)
    assert (plane.order(order.order_id).receipt or {})["unreachable_since"] is None


def test_a_cancel_without_the_broker_is_recorded_and_done_when_it_is_back(
    plane: Plane, oka: DroneStandIn, valkey: BrokerServer
) -> None:
    plane.supervisor()
    order_id = plane.submit()
    order = plane.until(oka.take)
    plane.until(lambda: plane.dispatch(order_id).published_at)
    valkey.stop()
    assert cancel(plane.core, plane.admin, order_id).status == "canceling"
    valkey.start()
    plane.reaches(order_id, "canceled")
    assert oka.claim(order) is False


def test_the_next_order_of_the_session_goes_on_after_a_cancel(plane: Plane, oka: DroneStandIn) -> None:
    first = plane.submit()
    second = plane.submit(session=plane.order(first).session)
    cancel(plane.core, plane.admin, first)
    place_queued(plane.core)
    assert (plane.status(second), plane.order(second).drone) == ("assigned", oka.name)
    turns = {each.order_id: each.status for each in plane.rows(Turn)}
    assert turns == {first: "aborted", second: "processing"}
