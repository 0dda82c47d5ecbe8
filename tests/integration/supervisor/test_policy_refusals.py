"""An order that a drone's owner does not allow goes to another drone, or waits and says why."""

from __future__ import annotations

from functools import partial

from control_plane.db.drones import Drone
from shared.events import ErrorStep
from shared.reasons import DroneState, NoDroneTakesWork
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

WHY = "this drone's policy does not allow orders in mode build: orders.modes in /p.toml, line 2"


def refuse(drone: DroneStandIn) -> WorkOrder:
    order: WorkOrder = drone.until(lambda: drone.beat(policy_age_s=600.0) or drone.take())
    drone.claim(order)
    error = ErrorStep(what="this drone's policy does not allow orders in mode build", code="E-POLICY-ORDER")
    end = drone.ended(status="failed", exit_status="refused", reason=WHY, order_at_fault=False)
    drone.report(order, drone.started(), error, end)
    return order


def seen(plane: Plane, *drones: DroneStandIn) -> None:
    """Let the control plane know the policies of drones."""
    for drone in drones:
        plane.until(partial(_beats, plane, drone))


def _beats(plane: Plane, drone: DroneStandIn) -> bool:
    drone.beat(policy_age_s=600.0)
    return _age(plane, drone) == 600.0


def _age(plane: Plane, drone: DroneStandIn) -> float | None:
    return (plane.rows(Drone, Drone.id == drone.id)[0].beat or {}).get("policy_age_s")


def test_a_refused_order_goes_to_another_drone_and_is_no_failed_attempt(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila", online=False)
    plane.collector(), plane.supervisor()
    seen(plane, oka)
    order_id = plane.submit()
    refuse(oka)
    plane.until(lambda: oka.beat(policy_age_s=600.0) or plane.status(order_id) == "queued")

    seen(plane, mila)
    order = plane.until(lambda: oka.beat(policy_age_s=600.0) or mila.beat(policy_age_s=600.0) or mila.take())
    mila.do(order)
    plane.until(lambda: plane.status(order_id) == "succeeded")

    shown = plane.order(order_id)
    assert [(run.drone, run.status) for run in shown.runs] == [("oka", "failed"), ("mila", "success")]


def test_an_order_that_the_only_drone_refuses_waits_with_the_line_until_the_policy_changes(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    seen(plane, oka)
    order_id = plane.submit(drone="oka")
    refuse(oka)

    refuses = NoDroneTakesWork(states=(DroneState(drone="oka", code="refuses", detail=WHY),))
    plane.until(lambda: oka.beat(policy_age_s=600.0) or plane.facts(order_id).waits == refuses)
    assert "oka refused this order: this drone's policy" in plane.order(order_id).reason
    assert "line 2" in plane.order(order_id).reason

    order = plane.until(lambda: oka.beat(policy_age_s=0.0) or oka.take())
    oka.do(order)
    plane.until(lambda: plane.status(order_id) == "succeeded")


def _withheld(plane: Plane, drone: DroneStandIn) -> bool:
    return bool((plane.rows(Drone, Drone.id == drone.id)[0].beat or {}).get("withheld"))


def test_what_waits_for_a_drone_outside_its_hours_says_so(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    why = "outside its hours, at Mon 12:30 (when.hours in /p.toml, line 2)"
    plane.until(lambda: oka.beat(withheld=why) or _withheld(plane, oka))
    order_id = plane.submit()

    plane.until(
        lambda: (
            plane.facts(order_id).waits
            == NoDroneTakesWork(states=(DroneState(drone="oka", code="withheld", detail=why),))
        ),
    )
    assert f"oka accepts no work now by its owner's policy: {why}" in plane.order(order_id).reason
    plane.until(lambda: oka.beat() or plane.status(order_id) == "assigned")
