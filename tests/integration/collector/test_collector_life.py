"""An order's whole life, as a drone reports it."""

from __future__ import annotations

from tests.support.planes import Plane


def test_an_order_goes_from_submission_to_its_end(any_plane: Plane) -> None:
    drone = any_plane.drone()
    any_plane.collector(), any_plane.supervisor()
    order_id = any_plane.submit()
    drone.do(any_plane.until(drone.take))
    order = any_plane.until(lambda: (found := any_plane.order(order_id)).status == "succeeded" and found)
    assert [step.kind for step in order.steps] == [
        *("run_started", "prepared", "user", "assistant", "delivered", "run_ended")
    ]
    assert (order.attempt, order.generation, order.exit_status, order.response) == (1, 1, "stopped", "done")


def test_a_stored_end_is_confirmed_to_the_drone(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    plane.submit()
    order = plane.until(drone.take)
    drone.do(order)
    confirm = plane.until(lambda: drone.told("confirm"))[0].body
    assert (confirm.run_id, confirm.last_seq) == (order.run_id, 6)
