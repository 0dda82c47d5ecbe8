"""A drone that reports work on a branch of others, or a file that others stored, gets neither shown as its own."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from control_plane.db.drones import RawEvent
from control_plane.db.orders import Order
from control_plane.operations import sessions
from control_plane.operations.orders import reading
from shared.blobs import digest
from shared.errors import NotFound
from shared.events import Delivered, ToolCallStep, ToolResultStep
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

SECRET = b"of another organization"


def begun(plane: Plane) -> tuple[DroneStandIn, WorkOrder]:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    return drone, plane.begun(drone)


@pytest.mark.parametrize(
    "fields",
    [{"branch": "fleet/000000000000"}, {"branch": ""}, {"late_ref": "fleet-late/000000000000/1"}],
    ids=str,
)
def test_work_on_a_branch_of_another_order_is_refused(plane: Plane, fields: dict[str, Any]) -> None:
    drone, order = begun(plane)
    drone.report(order, Delivered(**fields))
    plane.until(lambda: plane.rows(RawEvent))
    assert plane.rows(RawEvent)[0].error.startswith("the work is on a branch of another order")
    row = plane.rows(Order, Order.id == order.order_id)[0]
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


def test_a_file_that_another_run_stored_is_not_shown_as_its_own(plane: Plane) -> None:
    drone, order = begun(plane)
    name = digest(SECRET)
    plane.core.blobs.store(name, BytesIO(SECRET))
    log = ToolResultStep(call_id="x", output="", log_sha256=name)
    head = "c" * 40
    work = Delivered(
        branch=f"fleet/{order.order_id}", head_commit=head, patch_sha256=name, patch_bytes=1, bundle_sha256=name
    )
    drone.report(order, ToolCallStep(call_id="x", tool="shell"), log, work, drone.ended())
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    shown = plane.order(order.order_id)
    assert shown.patch is None
    seq = next(step.seq for step in shown.steps if step.kind == "tool_result")
    for read in (
        lambda: reading.patch_of(plane.core, plane.admin, order.order_id),
        lambda: reading.log_of(plane.core, plane.admin, order.order_id, seq),
        lambda: sessions.bundle_of(plane.core, plane.admin, shown.session),
    ):
        with pytest.raises(NotFound):
            read()
