"""An order that a drone may not or cannot run goes to another drone, or waits and says why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.supervisor.placing import place_queued
from shared.events import ErrorStep
from shared.names import new_id
from shared.reasons import DroneState, NoDroneTakesWork, PausesAfterFailure
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

WHY = "this drone's policy does not allow orders in mode build: orders.modes in /p.toml, line 2"


OLD, NEW = {"policy_age_s": 600.0}, {"policy_age_s": 0.0}
"""Beats of a drone whose policy has not changed for long, and whose policy is new."""


def refuse(drone: DroneStandIn) -> WorkOrder:
    order: WorkOrder = drone.until(lambda: drone.beat(**OLD) or drone.take())
    drone.claim(order)
    error = ErrorStep(what="this drone's policy does not allow orders in mode build", code="E-POLICY-ORDER")
    end = drone.ended(status="failed", exit_status="refused", reason=WHY, order_at_fault=False)
    drone.report(order, drone.started(), error, end)
    return order


def seen(plane: Plane, drone: DroneStandIn, field: str, value: object) -> None:
    """Let the control plane know this of a drone's policy."""

    def known() -> bool:
        drone.beat(**{field: value})
        return (plane.rows(Drone, Drone.id == drone.id)[0].beat or {}).get(field) == value

    plane.until(known)


def test_an_order_that_the_only_drone_refuses_waits_with_the_line_until_the_policy_changes(
    running: Plane, oka: DroneStandIn
) -> None:
    seen(running, oka, "policy_age_s", 600.0)
    of_oka, of_any = running.submit(drone="oka"), running.submit()
    refuse(oka), refuse(oka)

    refuses = NoDroneTakesWork(states=(DroneState(drone="oka", code="refuses", detail=WHY),))
    for order_id in (of_oka, of_any):
        running.until(lambda each=order_id: oka.beat(**OLD) or running.facts(each).waits == refuses)
    assert "line 2" in running.order(of_oka).reason

    # Another drone takes what is not for this one alone.
    mila = running.drone("mila", online=False)
    seen(running, mila, "policy_age_s", 600.0)
    mila.do(running.until(lambda: oka.beat(**OLD) or mila.beat(**OLD) or mila.take()))
    shown = running.reaches(of_any, "succeeded")
    assert [(run.drone, run.status) for run in shown.runs] == [("oka", "failed"), ("mila", "success")]
    assert running.facts(of_oka).waits == refuses

    oka.do(running.until(lambda: oka.beat(**NEW) or oka.take()))
    running.reaches(of_oka, "succeeded")


def test_what_waits_for_a_drone_outside_its_hours_says_so(running: Plane, oka: DroneStandIn) -> None:
    why = "outside its hours, at Mon 12:30 (when.hours in /p.toml, line 2)"
    seen(running, oka, "withheld", why)
    order_id = running.submit()
    withheld = NoDroneTakesWork(states=(DroneState(drone="oka", code="withheld", detail=why),))
    running.until(lambda: running.facts(order_id).waits == withheld)
    assert f"oka accepts no work now by its owner's policy: {why}" in running.order(order_id).reason
    running.until(lambda: oka.beat() or running.status(order_id) == "assigned")


# --- what a drone cannot run for lack of something that others may have


NO_ACCESS = "https://git.example/app.git denied access to this drone (next: git ls-remote https://git.example/app.git)"


def cannot(*drones: DroneStandIn) -> DroneStandIn:
    """The drone that gets the order next; it reports that it has no access to the repository."""
    drone, order = drones[0].until(lambda: next(((each, got) for each in drones if (got := each.take())), None))
    drone.claim(order)
    error = ErrorStep(what="https://git.example/app.git denied access to this drone", code="E-GIT-AUTH", ended_run=True)
    end = drone.ended(status="failed", exit_status="refused", reason=NO_ACCESS, unsuitable=True)
    drone.report(order, drone.started(), error, end)
    return drone


def test_an_order_fails_only_after_one_attempt_on_each_drone_that_it_may_go_to_with_the_reason_once(
    running: Plane,
) -> None:
    oka, mila = running.drone("oka"), running.drone("mila")
    order_id = running.submit()
    other = mila if cannot(oka, mila) is oka else oka
    other.do(running.until(other.take))
    shown = running.reaches(order_id, "succeeded")
    assert [run.status for run in shown.runs] == ["failed", "success"]
    assert running.rows(Order, Order.id == order_id)[0].lost_runs == 0

    cases: tuple[tuple[dict[str, Any], int], ...] = (({}, 2), ({"drone": "oka"}, 1), ({"max_attempts": 1}, 1))
    for wanted, attempts in cases:
        order_id = running.submit(**wanted)
        tried = [cannot(oka, mila).name for _ in range(attempts)]
        shown = running.reaches(order_id, "failed")
        assert [run.drone for run in shown.runs] == tried
        assert (len(set(tried)), shown.exit_status) == (attempts, "refused")
        assert shown.reason.startswith(NO_ACCESS)


@pytest.mark.parametrize("will_not_run", [refuse, cannot])
def test_an_order_waits_behind_a_busy_drone_rather_than_for_a_free_one_that_would_not_run_it(
    running: Plane, oka: DroneStandIn, will_not_run: Callable[[DroneStandIn], object]
) -> None:
    mila = running.drone("mila", concurrency=1)
    working = running.begun(mila)
    seen(running, oka, "policy_age_s", 600.0)
    order_id = running.submit()
    will_not_run(oka)
    running.until(lambda: running.order(order_id).drone == "mila")
    for _ in range(8):
        oka.beat(**OLD), mila.beat(mila.run_beat(working))
        running.round()
    assert (running.order(order_id).drone, running.order(order_id).generation) == ("mila", 2)


# --- an order that failed by the fleet's fault waits a little before it is tried again, and says until when a


PAUSES = (3.0, 12.0, 30.0)


def failed(plane: Plane, *ago: float, **columns: object) -> str:
    """An order in the queue whose runs failed so many seconds ago, the latest named last."""
    order_id, now = plane.submit(), plane.core.clock.now()
    row = plane.rows(Order, Order.id == order_id)[0]
    drone = plane.drones[0]
    with plane.core.database.write() as db:
        for generation, seconds in enumerate(ago, 2):
            ended = now - timedelta(seconds=seconds)
            fields = {"status": "failed", "reason": "the repository cannot be reached", "output_tokens": 0, **columns}
            ids = {"id": new_id(), "organization_id": row.organization_id, "order_id": order_id, "drone_id": drone.id}
            common = {**ids, "generation": generation}
            db.add(Dispatch(created_at=ended, closed_at=ended, **common))
            db.flush()
            db.add(Run(attempt=generation, started_at=ended, ended_at=ended, **fields, **common))
    values = {"lost_runs": len(ago), "generation": len(ago) + 1, "status": "queued", "drone_id": None, "run_id": None}
    plane.edit(Order, order_id, **values)
    return order_id


def test_the_wait_grows_with_each_failure_in_a_row_of_runs_that_never_got_to_work_and_is_told(
    plane: Plane,
) -> None:
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
    waits = plane.facts(next(iter(expected))).waits
    assert isinstance(waits, PausesAfterFailure)
    assert (waits.attempt, waits.attempts, waits.detail) == (1, 3, "the repository cannot be reached")
    assert waits.until > plane.core.clock.now()
