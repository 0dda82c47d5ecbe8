"""What Flower sees of a drone: each order's task comes to an end of its own kind, and tells ids alone."""

from __future__ import annotations

from typing import Any

from tests.support import wait_until
from tests.support.control_stand_in import Dispatch, window
from tests.support.drones import Workshop
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory

SLOW = [shell("echo begun; sleep 300"), {"text": "Done."}]


def test_flowers_terminate_ends_the_run_and_fails_the_order_with_the_reason(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    with window(busy_fleet.fleet) as state:
        sent = busy_fleet.submit(scripted(SLOW).url)
        wait_until(lambda: shown(state, sent) == "STARTED")
        busy_fleet.fleet.broker.celery.control.terminate(sent.run_id)
        end = busy_fleet.fleet.ended(sent)
        wait_until(lambda: shown(state, sent) == "REVOKED")
    assert (end.status, end.exit_status) == ("failed", "canceled")
    assert end.reason == "stopped by an operator in Flower"


def test_flowers_revoke_ends_an_order_that_waits_without_asking_the_model(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    model = scripted([{"text": "Done."}])
    order = busy_fleet.order(model.url)
    with window(busy_fleet.fleet) as state:
        answers = busy_fleet.fleet.broker.celery.control.revoke(order.run_id, reply=True)
        sent = busy_fleet.fleet.dispatch(order)
        end = busy_fleet.fleet.ended(sent)
        wait_until(lambda: shown(state, sent) == "REVOKED")
    assert len(answers) == 1
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "canceled", True)
    assert end.reason == "stopped by an operator in Flower"
    assert end.receipt is not None
    assert end.receipt.survivors == 0
    assert model.requests == []


def shown(state: Any, sent: Dispatch) -> str | None:
    task = state.tasks.get(sent.run_id)
    return task.state if task else None


def test_orders_that_succeeded_and_failed_are_shown_so_without_their_content(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    order = busy_fleet.order(scripted([{"text": "Done."}]).url)
    project = order.project.model_copy(update={"branch": "a-secret-branch"})
    with window(busy_fleet.fleet) as state:
        done = busy_fleet.submit(scripted([{"text": "Done."}]).url)
        wait_until(lambda: shown(state, done) == "SUCCESS")
        failed = busy_fleet.fleet.dispatch(order.model_copy(update={"project": project}))
        wait_until(lambda: shown(state, failed) == "FAILURE")
        succeeded, task = state.tasks[done.run_id], state.tasks[failed.run_id]
    assert succeeded.worker.hostname == busy_fleet.drone.worker
    assert done.envelope not in str(succeeded.info())
    assert task.exception == f"RunFailed('run {failed.run_id} of order {order.order_id} failed: refused')"
    assert "a-secret-branch" not in str(task.info(("exception", "traceback", "args", "result")))
