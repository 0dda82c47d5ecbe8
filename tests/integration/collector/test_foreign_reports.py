"""A drone with its own key and channel names another drone in a report: nothing of that one changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from control_plane.core import AuthenticatedDrone
from control_plane.db.drones import Drone, RawEvent
from control_plane.db.runs import Run
from control_plane.drones.reports import REPORTS, ReportSender
from control_plane.operations.drones import managing, rotation
from control_plane.web.text_in_flight import LiveKeys
from shared import envelope, names
from shared.envelope import Binding
from shared.errors import Forbidden
from shared.events import Beat, Delta, Event, Hello
from shared.registration import NewKey, NewKeyRequest
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

LIES: dict[str, Any] = {"boot_id": "b" * 12, "machine_id": "elsewhere", "version": "6.6.6", "sandbox": "none"}


def says_event(plane: Plane, thief: DroneStandIn, order: WorkOrder) -> None:
    thief.report(order, thief.ended(response="stolen"))
    plane.until(lambda: len(plane.rows(RawEvent, RawEvent.drone_id == thief.id)) == 1)


def says_hello(plane: Plane, thief: DroneStandIn, order: WorkOrder) -> None:
    hello = Hello(drone_id=order.drone_id, at=plane.core.clock.now(), concurrency=64, **LIES)
    thief.put("hello", thief.seal(hello.model_dump_json(), Binding(direction="hello", drone=thief.id)))
    plane.until(lambda: len(plane.rows(RawEvent, RawEvent.drone_id == thief.id)) == 2)


def says_beat(plane: Plane, thief: DroneStandIn, order: WorkOrder) -> None:
    beat = Beat(drone_id=order.drone_id, sent_at=plane.core.clock.now(), concurrency=64, stopping=True, **LIES)
    sealed = thief.seal(beat.model_dump_json(), Binding(direction="beat", drone=thief.id))

    def refused() -> bool:
        thief.redis.publish(names.beat_channel(thief.id), sealed)
        return any(line["event"] == "a heartbeat was refused" for line in logged)

    with capture_logs() as logged:
        plane.until(refused)
        for _ in range(5):
            refused()
            plane.round()
    assert len([line for line in logged if line["event"] == "a heartbeat was refused"]) == 1


def says_delta(plane: Plane, thief: DroneStandIn, order: WorkOrder) -> None:
    delta = Delta(run_id=order.run_id, order_id=order.order_id, kind="text", text="forged")
    key = envelope.public_key(thief.private_key)
    sender = ReportSender(thief.id, (key,), {order.run_id: order.drone_id, "run-of-thief": thief.id}.get)
    for binding in (
        Binding(direction="live", drone=thief.id, order=order.order_id, run=order.run_id),
        Binding(direction="live", drone=thief.id, order="order-of-thief", run="run-of-thief"),
    ):
        assert LiveKeys(plane.core).open_delta(sender, thief.seal(delta.model_dump_json(), binding)) is None


def says_new_key(plane: Plane, thief: DroneStandIn, order: WorkOrder) -> None:
    rotation.rotate_keys(plane.core, plane.admin, thief.name)
    identity = AuthenticatedDrone(thief.id, plane.admin.organization_id, thief.name)
    asked = NewKey(drone_id=order.drone_id, public_key="A" * 43 + "=").model_dump_json()
    for drone in (thief.id, order.drone_id):
        request = NewKeyRequest(envelope=thief.seal(asked, Binding(direction="key", drone=drone)))
        with pytest.raises(Forbidden):
            rotation.issue_next_keys(plane.core, identity, request)


SAYS: dict[type, Callable[[Plane, DroneStandIn, WorkOrder], None]] = {
    Event: says_event,
    Hello: says_hello,
    Beat: says_beat,
    Delta: says_delta,
    NewKey: says_new_key,
}


def facts_of(plane: Plane, order: WorkOrder) -> list[Any]:
    """What is known of the victim: its row, how it is shown, its run and its order."""
    drone, run = plane.rows(Drone, Drone.id == order.drone_id)[0], plane.rows(Run, Run.id == order.run_id)[0]
    shown = next(each for each in managing.list_drones(plane.core, plane.admin) if each.id == order.drone_id)
    row = {column.name: getattr(drone, column.name) for column in Drone.__table__.columns}
    of_run = {column.name: getattr(run, column.name) for column in Run.__table__.columns}
    return [row, shown.status, of_run, plane.status(order.order_id)]


def test_a_report_that_names_another_drone_changes_nothing_of_it(plane: Plane) -> None:
    assert SAYS.keys() == REPORTS.keys()
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    before = facts_of(plane, order)

    for kind, says in SAYS.items():
        says(plane, mila, order)
        assert (kind, facts_of(plane, order)) == (kind, before)
    assert before[1] == "online"
    plane.submit(drone="oka")
    assert plane.until(oka.take).drone_id == oka.id


def test_runs_of_another_drone_in_a_heartbeat_or_hello_are_ignored(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    before = facts_of(plane, order)
    stolen = oka.run_beat(order, doing="whatever", ended=True, last_seq=99)

    plane.until(lambda: mila.beat(stolen) or plane.rows(Drone, Drone.id == mila.id)[0].boot_id == mila.boot)
    mila.restart(stolen)
    # Not its boot id: a heartbeat from before the hello may be written after it.
    plane.until(lambda: plane.core.broker.redis.xlen(names.events_stream(mila.id)) == 0)

    assert facts_of(plane, order) == before
    assert oka.told("resend") == mila.told("resend") == []
