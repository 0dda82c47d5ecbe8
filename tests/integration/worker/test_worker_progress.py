"""A real drone and runs of which nothing comes: ended by cause, unless they print, or the drone itself was stopped."""

from __future__ import annotations

from shared.work_order import Limits, WorkOrder
from tests.support import wait_until
from tests.support.drones import Workshop
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory

LIMIT = 4.0
SILENT = "echo begun; sleep 300"


def impatient(order: WorkOrder) -> WorkOrder:
    return order.model_copy(update={"limits": Limits(progress_timeout=LIMIT)})


def test_a_run_of_which_nothing_comes_is_ended_by_cause(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    model = scripted([shell(SILENT), {"text": "Done."}])
    end = busy_fleet.fleet.ended(busy_fleet.fleet.dispatch(impatient(busy_fleet.order(model.url))), seconds=60)
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "no_progress", True)
    assert end.reason == f"no progress for 4 s during `shell: {SILENT}`"
    assert end.receipt is not None
    assert end.receipt.survivors == 0


def test_a_run_that_hangs_is_ended_on_its_behalf(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    model = scripted([shell(SILENT), {"text": "Done."}])
    sent = busy_fleet.fleet.dispatch(impatient(busy_fleet.order(model.url)))
    wait_until(lambda: busy_fleet.printed(sent, "begun"), seconds=60)
    process = busy_fleet.drone.run_process(sent.run_id)
    process.suspend()
    wait_until(lambda: f"run {sent.run_id}: no progress for 4 s" in busy_fleet.drone.log())
    # As the drone does itself when the run has not ended two minutes later.
    process.kill()
    end = busy_fleet.fleet.ended(sent)
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "no_progress", True)
    assert end.reason.startswith(f"no progress for 4 s during `shell: {SILENT}`")
