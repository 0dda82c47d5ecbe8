"""An order that a drone cannot run, for lack of something that others may have, is tried once on each of them."""

from __future__ import annotations

from datetime import timedelta

from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.supervisor.placing import place_queued
from shared.clock import SystemClock
from shared.events import ErrorStep
from shared.names import new_id
from shared.reasons import PausesAfterFailure
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


def test_an_order_goes_to_another_drone_at_once_and_succeeds_there(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    order_id = plane.submit()

    other = mila if cannot(oka, mila) is oka else oka
    plane.until(lambda: (order := other.take()) and (other.do(order) or True))
    plane.until(lambda: plane.status(order_id) == "succeeded")

    assert [run.status for run in plane.order(order_id).runs] == ["failed", "success"]
    assert plane.rows(Order, Order.id == order_id)[0].lost_runs == 0


def test_an_order_fails_after_one_attempt_on_each_drone_with_the_reason_once(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    order_id = plane.submit()

    tried = {cannot(oka, mila).name, cannot(oka, mila).name}
    plane.until(lambda: plane.status(order_id) == "failed")

    assert tried == {"oka", "mila"}
    shown = plane.order(order_id)
    assert shown.reason.startswith(WHY)
    assert (shown.exit_status, len(shown.runs)) == ("refused", 2)


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


# --- an order that failed by the fleet's fault waits a little before it is tried again, and says until when a


PAUSES = (3.0, 12.0, 30.0)


def failed(plane: Plane, *ago: float, **columns: object) -> str:
    """An order in the queue whose runs failed so many seconds ago, the latest named last."""
    order_id, now = plane.submit(), SystemClock().now()
    row = plane.rows(Order, Order.id == order_id)[0]
    drone = plane.drones[0]
    with plane.core.database.write() as db:
        for generation, seconds in enumerate(ago, 2):
            ended = now - timedelta(seconds=seconds)
            fields = {"status": "failed", "reason": "the repository cannot be reached", "output_tokens": 0, **columns}
            common = {
                "id": new_id(),
                "organization_id": row.organization_id,
                "order_id": order_id,
                "drone_id": drone.id,
                "generation": generation,
            }
            db.add(Dispatch(created_at=ended, closed_at=ended, **common))
            db.flush()
            db.add(Run(attempt=generation, started_at=ended, ended_at=ended, **fields, **common))
    values = {"lost_runs": len(ago), "generation": len(ago) + 1, "status": "queued", "drone_id": None, "run_id": None}
    plane.edit(Order, order_id, **values)
    return order_id


def test_the_wait_grows_with_each_failure_in_a_row_of_runs_that_never_got_to_work(plane: Plane) -> None:
    plane.drone("oka")
    expected = {
        failed(plane, 1): False,
        failed(plane, 5): True,
        failed(plane, 60, 5): False,
        failed(plane, 60, 14): True,
        failed(plane, 60, 50, 20): False,
        failed(plane, 90, 60, 50, 32): True,
        failed(plane, 60, 50, 0, output_tokens=7): True,
        failed(plane, 0, status="lost"): True,
        failed(plane, 0, status="preempted"): True,
    }
    for column in ("fresh_generation", "renewed_generation"):
        sent_on_by_a_person = failed(plane, 0)
        plane.edit(Order, sent_on_by_a_person, **{column: 2})
        expected[sent_on_by_a_person] = True
    place_queued(plane.core, PAUSES)
    found = [plane.order(order_id).status == "assigned" for order_id in expected]
    assert found == list(expected.values())


def test_the_order_says_until_when_and_why(plane: Plane) -> None:
    plane.drone("oka")
    order_id = failed(plane, 1)
    place_queued(plane.core, PAUSES)
    waits = plane.facts(order_id).waits
    assert isinstance(waits, PausesAfterFailure)
    assert (waits.attempt, waits.attempts, waits.detail) == (1, 3, "the repository cannot be reached")
    assert waits.until > plane.core.clock.now()
