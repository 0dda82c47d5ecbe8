"""A queue holds the messages of orders that wait in it, also while its drone is switched off."""

from __future__ import annotations

from control_plane.broker.queue_messages import queued_messages
from control_plane.operations.drones import managing
from control_plane.operations.orders import canceling
from control_plane.supervisor.stale_messages import StaleMessages
from shared import names
from tests.support.planes import Plane


def queued_runs(plane: Plane, drone_id: str) -> set[str]:
    return {message.run_id for message in queued_messages(plane.core.broker, drone_id, 0, 100)} - {""}


def test_canceled_orders_leave_the_queue_of_a_drone_that_is_switched_off(plane: Plane) -> None:
    oka = plane.drone("oka", concurrency=1)
    plane.supervisor()
    first, second, kept = (plane.submit(f"{number}", drone="oka") for number in range(3))
    plane.until(lambda: oka.queued() == 3)
    assert managing.show_drone(plane.core, plane.admin, "oka").queued == 3

    for order_id in (first, second):
        canceling.cancel(plane.core, plane.admin, order_id)

    plane.until(lambda: oka.queued() == 1)
    assert queued_runs(plane, oka.id) == {plane.dispatch(kept).id}
    assert managing.show_drone(plane.core, plane.admin, "oka").queued == 1
    assert (order := oka.take()) is not None
    assert oka.claim(order)


def test_a_taken_order_whose_run_is_starting_is_no_longer_queued(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.supervisor()
    plane.submit()
    order = plane.until(oka.take)
    assert oka.claim(order)

    plane.until(lambda: managing.show_drone(plane.core, plane.admin, "oka").running == 1)
    assert managing.show_drone(plane.core, plane.admin, "oka").queued == 0


def test_what_is_no_message_and_what_is_unknown_stays(plane: Plane) -> None:
    oka, broker = plane.drone("oka"), plane.core.broker
    junk = ("x", "[]", "{}", '{"headers": 1}', '{"headers": {"id": [1]}}')
    broker.redis.lpush(names.queue(oka.id), *junk)
    broker.publish_order(drone_id=oka.id, order_id="0" * 12, run_id="1" * 12, generation=1, envelope="sealed")

    assert StaleMessages(plane.core).drop() == 0
    assert queued_runs(plane, oka.id) == {"1" * 12}
    assert oka.queued() == len(junk) + 1
