"""An order that a drone cannot run, for lack of something that others may have, is tried once on each of them."""

from __future__ import annotations

from control_plane.db.orders import Order
from shared.events import ErrorStep
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

WHY = "https://git.example/app.git denied access to this drone (next: git ls-remote https://git.example/app.git)"


def cannot(*drones: DroneStandIn) -> DroneStandIn:
    """The drone that gets the order next; it reports that it has no access to the repository."""
    drone, order = drones[0].until(lambda: next(((each, got) for each in drones if (got := each.take())), None))
    drone.claim(order)
    error = ErrorStep(what="https://git.example/app.git denied access to this drone", code="E-GIT-AUTH", ended_run=True)
    end = drone.ended(status="failed", exit_status="refused", reason=WHY, unsuitable=True)
    drone.report(order, drone.started(), error, end)
    return drone


def test_an_order_goes_to_another_drone_at_once_and_succeeds_there(any_plane: Plane) -> None:
    oka, mila = any_plane.drone("oka"), any_plane.drone("mila")
    any_plane.collector(), any_plane.supervisor()
    order_id = any_plane.submit()

    other = mila if cannot(oka, mila) is oka else oka
    any_plane.until(lambda: (order := other.take()) and (other.do(order) or True))
    any_plane.until(lambda: any_plane.status(order_id) == "succeeded")

    assert [run.status for run in any_plane.order(order_id).runs] == ["failed", "success"]
    assert any_plane.rows(Order, Order.id == order_id)[0].lost_runs == 0


def test_an_order_fails_after_one_attempt_on_each_drone_with_the_reason_once(any_plane: Plane) -> None:
    oka, mila = any_plane.drone("oka"), any_plane.drone("mila")
    any_plane.collector(), any_plane.supervisor()
    order_id = any_plane.submit()

    tried = {cannot(oka, mila).name, cannot(oka, mila).name}
    any_plane.until(lambda: any_plane.status(order_id) == "failed")

    assert tried == {"oka", "mila"}
    shown = any_plane.order(order_id)
    assert shown.reason == f"{WHY}; so it was on 2 drones"
    assert (shown.exit_status, len(shown.runs)) == ("refused", 2)


def test_an_order_fails_at_once_if_no_other_drone_takes_it(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.drone("away", online=False)
    plane.collector(), plane.supervisor()
    order_id = plane.submit()

    cannot(oka)
    plane.until(lambda: plane.status(order_id) == "failed")

    assert (plane.order(order_id).reason, len(plane.order(order_id).runs)) == (WHY, 1)


def test_an_order_for_a_named_drone_does_not_go_to_another(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.drone("mila")
    plane.collector(), plane.supervisor()
    order_id = plane.submit(drone="oka")

    cannot(oka)
    plane.until(lambda: plane.status(order_id) == "failed")

    assert [run.drone for run in plane.order(order_id).runs] == ["oka"]


def test_an_order_is_tried_on_no_more_drones_than_it_may_have_attempts(plane: Plane) -> None:
    drones = [plane.drone(f"drone-{number}") for number in range(4)]
    plane.collector(), plane.supervisor()
    order_id = plane.submit(max_attempts=2)

    cannot(*drones), cannot(*drones)
    plane.until(lambda: plane.status(order_id) == "failed")

    assert len(plane.order(order_id).runs) == 2
