"""An order that failed by the fleet's fault waits a little before it is tried again, and says until when and why."""

from __future__ import annotations

from datetime import timedelta

import pytest

from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.supervisor.placing import place_queued
from shared.clock import SystemClock
from shared.names import new_id
from shared.reasons import PausesAfterFailure
from tests.support.planes import Plane

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


def placed(plane: Plane, order_id: str) -> bool:
    place_queued(plane.core, PAUSES)
    return plane.order(order_id).status == "assigned"


@pytest.mark.parametrize(
    ("ago", "goes"),
    [((1,), False), ((5,), True), ((60, 5), False), ((60, 14), True), ((60, 50, 20), False), ((90, 60, 50, 32), True)],
)
def test_the_wait_grows_with_each_failure_in_a_row(plane: Plane, ago: tuple[float, ...], goes: bool) -> None:
    plane.drone("oka")
    assert placed(plane, failed(plane, *ago)) is goes


def test_the_order_says_until_when_and_why(plane: Plane) -> None:
    plane.drone("oka")
    order_id = failed(plane, 1)
    place_queued(plane.core, PAUSES)
    waits = plane.facts(order_id).waits
    assert isinstance(waits, PausesAfterFailure)
    assert (waits.attempt, waits.attempts, waits.detail) == (1, 3, "the repository cannot be reached")
    assert waits.until > plane.core.clock.now()


def test_a_run_that_got_to_work_is_followed_by_no_wait(plane: Plane) -> None:
    plane.drone("oka")
    assert placed(plane, failed(plane, 60, 50, 0, output_tokens=7))


@pytest.mark.parametrize("status", ["lost", "preempted"])
def test_a_lost_or_returned_run_is_followed_by_no_wait(plane: Plane, status: str) -> None:
    plane.drone("oka")
    assert placed(plane, failed(plane, 0, status=status))


@pytest.mark.parametrize("column", ["fresh_generation", "renewed_generation"])
def test_an_order_that_a_person_sends_on_does_not_wait(plane: Plane, column: str) -> None:
    plane.drone("oka")
    order_id = failed(plane, 0)
    plane.edit(Order, order_id, **{column: 2})
    assert placed(plane, order_id)


def test_an_order_that_waits_holds_no_other_up(plane: Plane) -> None:
    plane.drone("oka")
    waiting, other = failed(plane, 0), failed(plane, 5)
    assert (placed(plane, other), plane.order(waiting).status) == (True, "queued")
