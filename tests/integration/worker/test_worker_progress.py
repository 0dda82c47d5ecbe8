"""A real drone and runs of which nothing comes: ended by cause, unless they print, or the drone itself was stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.events import RunEnded
from shared.work_order import Limits, WorkOrder
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn, Dispatch
from tests.support.drones import DroneUnderTest, Workshop
from tests.support.freezing import frozen
from tests.support.runs import order_for, shell
from tests.support.scripted import ScriptedFactory

LIMIT = 4.0
FROZEN_SECONDS = 8.0
SILENT = "echo begun; sleep 300"
PRINTS = "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 1; done"


def impatient(order: WorkOrder) -> WorkOrder:
    return order.model_copy(update={"limits": Limits(progress_timeout=LIMIT)})


def ended(workshop: Workshop, scripted: ScriptedFactory, command: str) -> RunEnded:
    """How an order ends that runs this command, under a short limit."""
    model = scripted([shell(command), {"text": "Done."}])
    sent = workshop.fleet.dispatch(impatient(workshop.order(model.url)))
    return workshop.fleet.ended(sent, seconds=60)


def test_a_run_of_which_nothing_comes_is_ended_by_cause(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    end = ended(busy_fleet, scripted, SILENT)
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "no_progress", True)
    assert end.reason == f"no progress for 4 s during `shell: {SILENT}`"
    assert end.receipt is not None
    assert end.receipt.survivors == 0


def test_a_command_that_prints_now_and_then_goes_on_for_longer_than_the_limit(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    assert ended(busy_fleet, scripted, PRINTS).status == "success"


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


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a_drone_that_was_frozen_ends_no_run_for_the_time_in_which_it_did_not_run_itself(
    stand_in: ControlPlaneStandIn,
    make_drone: Callable[..., DroneUnderTest],
    repository: Path,
    scripted: ScriptedFactory,
) -> None:
    drone = make_drone()
    drone.start_worker()
    model = scripted([shell(PRINTS), {"text": "Done."}])
    sent = stand_in.dispatch(impatient(order_for(drone.id, repository, model.url)))
    wait_until(lambda: prints(stand_in, sent), seconds=150)
    assert drone.process is not None
    with frozen(drone.process.pid):
        pass_seconds(FROZEN_SECONDS)
    assert stand_in.ended(sent).status == "success"
    assert max(beat.quiet_seconds for each in stand_in.beats(drone.id) for beat in each.runs) < FROZEN_SECONDS


def pass_seconds(seconds: float) -> None:
    """The time itself is what the test is about."""
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= until)


def prints(fleet: ControlPlaneStandIn, sent: Dispatch) -> bool:
    return any(delta.run_id == sent.run_id and delta.kind == "output" for delta in fleet.deltas(sent.order.drone_id))
