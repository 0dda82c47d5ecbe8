"""A drone reports of what is not its own: another drone, a branch of others, a file that others stored."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from structlog.testing import capture_logs

from control_plane.core import AuthenticatedDrone
from control_plane.db.drones import Drone, RawEvent
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.drones.reports import REPORTS, ReportSender
from control_plane.operations import sessions
from control_plane.operations.drones import managing, rotation
from control_plane.operations.orders import reading
from control_plane.web.text_in_flight import LiveKeys
from shared import envelope, names
from shared.blobs import digest
from shared.envelope import Binding
from shared.errors import Forbidden, NotFound
from shared.events import Beat, Delivered, Delta, Event, Hello, ToolCallStep, ToolResultStep
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


# --- a branch of others, or a file that others stored -------------------------------------------------


def test_work_on_a_branch_of_another_order_is_refused(running: Plane, oka: DroneStandIn) -> None:
    order = running.begun(oka)
    foreign = ({"branch": "fleet/000000000000"}, {"branch": ""}, {"late_ref": "fleet-late/000000000000/1"})
    for fields in foreign:
        oka.report(order, Delivered(**fields))
    running.until(lambda: len(running.rows(RawEvent)) == len(foreign))
    assert all(row.error.startswith("the work is on a branch of another order") for row in running.rows(RawEvent))
    row = running.rows(Order, Order.id == order.order_id)[0]
    assert (row.branch, row.late_refs) == (None, [])


def test_what_is_no_name_of_a_file_is_refused() -> None:
    for name in ("../../master.key", "a" * 63, "A" * 64):
        for make in (
            lambda file: Delivered(patch_sha256=file),
            lambda file: Delivered(bundle_sha256=file),
            lambda file: ToolResultStep(call_id="x", output="", log_sha256=file),
        ):
            with pytest.raises(ValueError, match="string_pattern_mismatch"):
                make(name)


def test_a_file_that_another_run_stored_is_not_shown_as_its_own(running: Plane, oka: DroneStandIn) -> None:
    order, secret = running.begun(oka), b"of another organization"
    name = digest(secret)
    running.core.blobs.store(name, BytesIO(secret))
    log = ToolResultStep(call_id="x", output="", log_sha256=name)
    files = {"patch_sha256": name, "patch_bytes": 1, "bundle_sha256": name}
    work = Delivered(branch=f"fleet/{order.order_id}", head_commit="c" * 40, **files)
    oka.report(order, ToolCallStep(call_id="x", tool="shell"), log, work, oka.ended())
    shown = running.reaches(order.order_id, "succeeded")
    assert shown.patch is None
    seq = next(step.seq for step in shown.steps if step.kind == "tool_result")
    for read in (
        lambda: reading.patch_of(running.core, running.admin, order.order_id),
        lambda: reading.log_of(running.core, running.admin, order.order_id, seq),
        lambda: sessions.bundle_of(running.core, running.admin, shown.session),
    ):
        with pytest.raises(NotFound):
            read()
