"""What Flower sees of a drone: each order's task comes to an end of its own kind, and tells ids alone."""

from __future__ import annotations

from typing import Any

from shared import names
from shared.control import Cancel, ControlMessage
from tests.support import wait_until
from tests.support.control_stand_in import Dispatch, window
from tests.support.drones import Workshop
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory

SLOW = [shell("echo begun; sleep 300"), {"text": "Done."}]


def test_an_order_that_succeeded_is_shown_so(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    with window(busy_fleet.fleet) as state:
        sent = busy_fleet.submit(scripted([{"text": "Done."}]).url)
        wait_until(lambda: shown(state, sent) == "SUCCESS")
        task = state.tasks[sent.run_id]
    assert task.worker.hostname == busy_fleet.drone.worker
    assert sent.envelope not in str(task.info())


def test_an_order_that_failed_is_shown_as_failed_without_its_content(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    order = busy_fleet.order(scripted([{"text": "Done."}]).url)
    project = order.project.model_copy(update={"branch": "a-secret-branch"})
    with window(busy_fleet.fleet) as state:
        sent = busy_fleet.fleet.dispatch(order.model_copy(update={"project": project}))
        wait_until(lambda: shown(state, sent) == "FAILURE")
        task = state.tasks[sent.run_id]
    assert task.exception == f"RunFailed('run {sent.run_id} of order {order.order_id} failed: refused')"
    assert "a-secret-branch" not in str(task.info(("exception", "traceback", "args", "result")))


def test_a_run_that_died_is_a_retry_because_its_order_goes_on(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    with window(busy_fleet.fleet) as state:
        sent = busy_fleet.submit(scripted(SLOW).url)
        wait_until(lambda: shown(state, sent) == "STARTED")
        wait_until(lambda: "assistant" in busy_fleet.fleet.kinds(sent))
        busy_fleet.drone.run_process(sent.run_id).kill()
        wait_until(lambda: shown(state, sent) == "RETRY")
        task = state.tasks[sent.run_id]
    assert task.exception == f"RunReturned('run {sent.run_id} of order {sent.order.order_id} failed: lost')"
    assert task.failed is None


def test_a_canceled_order_does_not_stay_started(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    with window(busy_fleet.fleet) as state:
        sent = busy_fleet.submit(scripted(SLOW).url)
        wait_until(lambda: shown(state, sent) == "STARTED")
        cancel = Cancel(run_id=sent.run_id, generation=1)
        busy_fleet.fleet.tell(busy_fleet.drone.id, ControlMessage(id=names.new_id(), body=cancel))
        wait_until(lambda: shown(state, sent) == "REVOKED")


def test_an_order_that_was_revoked_in_the_queue_does_not_stay_started(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    model = scripted([{"text": "Done."}])
    with window(busy_fleet.fleet) as state:
        order = busy_fleet.order(model.url)
        busy_fleet.fleet.broker.revoke_run(order.drone_id, order.run_id, order.generation)
        sent = busy_fleet.fleet.dispatch_without_key(order)
        wait_until(lambda: shown(state, sent) == "REVOKED")
    assert model.requests == []


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
