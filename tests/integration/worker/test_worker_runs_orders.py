"""A drone's worker takes orders from its queue, carries each out once, and reports what comes of it, also to Flower."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from shared import names
from shared.control import Cancel, Confirm, ControlMessage, Drain, Resend
from shared.events import Delivered, ErrorStep, RunEnded, RunStarted
from shared.transcripts import messages_of
from shared.work_order import Limits, WorkOrder
from tests.support import wait_until
from tests.support.control_stand_in import Dispatch, window
from tests.support.drones import Workshop
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory
from tests.support.transcripts import problems

SLOW = [shell("echo begun; sleep 300"), {"text": "Done."}]
DONE = [{"text": "Done."}]
EXAMPLES = Path(__file__).parents[2] / "contract" / "examples"


def tell(busy_fleet: Workshop, body: Any) -> None:
    busy_fleet.fleet.tell(busy_fleet.drone.id, ControlMessage(id=names.new_id(), body=body))


def begun(busy_fleet: Workshop, sent: Dispatch) -> None:
    wait_until(lambda: busy_fleet.printed(sent, "begun"), seconds=60)


def survivors(end: RunEnded) -> int:
    assert end.receipt is not None
    return end.receipt.survivors


def log_lines(busy_fleet: Workshop, begin: str) -> list[dict[str, Any]]:
    """The complete lines of the drone's log whose event begins so."""
    whole = [each for each in busy_fleet.drone.log().splitlines(keepends=True) if each.endswith("\n")]
    return [line for line in map(json.loads, whole) if line["event"].startswith(begin)]


def test_an_order_is_carried_out_and_every_event_arrives_in_order(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    fleet, drone = busy_fleet.fleet, busy_fleet.drone.id
    script = [shell("echo new > pushed.txt"), {"text": "Your key is sk-order-secret, is it not?"}]
    sent = busy_fleet.submit(scripted(script).url)
    end = fleet.ended(sent)
    events = fleet.events(drone, sent.run_id)
    assert (end.status, end.exit_status, end.response) == ("success", "stopped", "Your key is [redacted], is it not?")
    assert not any("sk-order-secret" in event.model_dump_json() for event in events)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[0].body, RunStarted)
    kinds = [event.body.kind for event in events]
    assert kinds.index("prepared") < kinds.index("user") < kinds.index("assistant")
    delivered = next(event.body for event in events if isinstance(event.body, Delivered))
    branches = subprocess.check_output(["git", "-C", busy_fleet.repository, "branch", "--list", "fleet/*"], text=True)
    assert delivered.pushed
    assert names.branch(sent.order.order_id) in branches
    assert b"+new" in fleet.blobs[str(delivered.patch_sha256)]
    assert str(delivered.bundle_sha256) in fleet.blobs
    # What was lost is sent again from the journal.
    fleet.broker.redis.xtrim(names.events_stream(drone), maxlen=0)
    tell(busy_fleet, Resend(run_id=sent.run_id, from_seq=1))
    wait_until(lambda: fleet.kinds(sent) == kinds)


def test_an_order_in_the_words_of_the_first_version_is_carried_out(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    whole = busy_fleet.order(scripted(DONE).url)
    example = json.loads((EXAMPLES / "v1" / "work_order.json").read_text())
    older = json.dumps(said_by(example, whole.model_dump(mode="json")))
    sent = busy_fleet.fleet.dispatch(whole, envelope=busy_fleet.fleet.sealed(whole, older))
    assert busy_fleet.fleet.ended(sent).status == "success"


def said_by(old: Any, value: Any) -> Any:
    """The value, with no more keys than the old example has."""
    if isinstance(old, dict) and isinstance(value, dict) and value.keys() & old.keys():
        return {key: said_by(old[key], each) for key, each in value.items() if key in old}
    return value


def test_a_run_whose_key_is_gone_is_not_claimed_and_the_log_names_its_order(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    model = scripted(DONE)
    order = busy_fleet.order(model.url)
    sent = Dispatch(order, busy_fleet.fleet.sealed(order))
    busy_fleet.fleet.publish(sent)
    (found,) = wait_until(lambda: log_lines(busy_fleet, f"run {sent.run_id} is not started"))
    assert (found["order"], found["run"], found["drone"]) == (sent.order.order_id, sent.run_id, busy_fleet.drone.id)
    assert not busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)
    assert not busy_fleet.drone.home.run_dir(sent.run_id).exists()
    assert model.requests == []


def test_copies_of_a_message_start_nothing_during_the_run_and_after_it_although_the_broker_was_emptied(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    fleet, model = busy_fleet.fleet, scripted([shell("echo begun; sleep 2"), *DONE])
    sent = busy_fleet.submit(model.url)
    wait_until(lambda: "tool_call" in fleet.kinds(sent), seconds=60)
    fleet.broker.redis.flushall()
    fleet.publish(sent)
    fleet.dispatch(sent.order)
    fleet.ended(sent)
    fleet.publish(sent)
    wait_until(lambda: fleet.broker.queue_length(busy_fleet.drone.id) == 0)
    # Celery notes the start and the end of each of the four messages.
    wait_until(lambda: busy_fleet.drone.log().count(f"fleet.run[{sent.run_id}]") >= 7, seconds=60)
    assert len(model.requests) == 2


def test_an_envelope_of_another_order_or_with_other_ids_is_refused_and_reported(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    fleet, model = busy_fleet.fleet, scripted(DONE)
    sent = fleet.dispatch(busy_fleet.order(model.url), envelope=fleet.sealed(busy_fleet.order(model.url)))
    end = fleet.ended(sent)
    assert (end.status, end.order_at_fault) == ("failed", False)
    assert "bound to another" in end.reason
    assert fleet.kinds(sent) == ["run_started", "error", "run_ended"]
    for other in ({"drone_id": "drone1111111"}, {"run_id": "run111111111"}, {"generation": 2}):
        order = busy_fleet.order(model.url)
        text = order.model_copy(update=other).model_dump_json()
        end = fleet.ended(fleet.dispatch(order, envelope=fleet.sealed(order, text)))
        assert (end.status, "its content has another" in end.reason) == ("failed", True)
    assert model.requests == []


def test_the_text_of_the_model_is_shown_while_it_streams(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    text = "One word after the other, slowly enough to be seen in pieces."
    model = scripted([{"text": text}], chunk_delay_s=0.05)
    sent = busy_fleet.submit(model.url)
    busy_fleet.fleet.ended(sent)
    pieces = [delta.text for delta in busy_fleet.fleet.deltas(busy_fleet.drone.id) if delta.run_id == sent.run_id]
    assert "".join(pieces) == text
    assert len(pieces) > 2


def test_a_cancel_ends_the_running_command_and_sends_a_receipt(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    sent = busy_fleet.submit(scripted(SLOW).url)
    begun(busy_fleet, sent)
    tell(busy_fleet, Cancel(run_id=sent.run_id, generation=1, reason="not needed any more"))
    end = busy_fleet.fleet.ended(sent)
    assert (end.status, end.exit_status, end.reason) == ("preempted", "canceled", "not needed any more")
    assert end.receipt is not None
    assert end.receipt.found > 0
    assert survivors(end) == 0
    assert not end.give_back


def test_an_ended_run_stays_in_the_beats_until_it_is_confirmed(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    sent = busy_fleet.submit(scripted(DONE).url)
    busy_fleet.fleet.ended(sent)
    wait_until(lambda: busy_fleet.run_in_beat(sent, ended=True))
    tell(busy_fleet, Confirm(run_id=sent.run_id, last_seq=len(busy_fleet.fleet.kinds(sent))))
    wait_until(lambda: not busy_fleet.run_in_beat(sent, ended=True))
    run_dir = busy_fleet.drone.home.run_dir(sent.run_id)
    assert run_dir.exists()
    assert not (run_dir / "journal.jsonl").exists()


def test_a_run_whose_order_another_generation_holds_falls_silent(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    sent = busy_fleet.submit(scripted(SLOW).url)
    begun(busy_fleet, sent)
    busy_fleet.fleet.broker.revoke_run(busy_fleet.drone.id, sent.run_id, 1)
    wait_until(lambda: not busy_fleet.run_in_beat(sent), seconds=60)
    assert busy_fleet.fleet.kinds(sent)[-1] == "tool_call"


def test_a_run_process_that_is_killed_gets_a_last_event_all_the_same(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    sent = busy_fleet.submit(scripted(SLOW).url)
    begun(busy_fleet, sent)
    busy_fleet.drone.run_process(sent.run_id).kill()
    end = busy_fleet.fleet.ended(sent)
    bodies = [event.body for event in busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)]
    error = bodies[-2]
    assert (end.status, end.order_at_fault, survivors(end)) == ("failed", False, 0)
    assert problems(messages_of(bodies)) == []
    assert isinstance(error, ErrorStep)
    assert "signal 9" in error.detail


def test_a_drained_drone_takes_nothing_until_it_is_told_to_go_on(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    drone = busy_fleet.drone.id
    tell(busy_fleet, Drain(on=True))
    wait_until(lambda: busy_fleet.fleet.beats(drone)[-1].draining)
    wait_until(lambda: not busy_fleet.drone.consumes())
    sent = busy_fleet.submit(scripted(DONE).url)
    wait_until(lambda: busy_fleet.fleet.broker.queue_length(drone) == 1)
    tell(busy_fleet, Drain(on=False))
    assert busy_fleet.fleet.ended(sent).status == "success"


# --- runs of which nothing comes -----------------------------------------------------------------


def impatient(order: WorkOrder) -> WorkOrder:
    return order.model_copy(update={"limits": Limits(progress_timeout=4.0)})


def test_a_run_of_which_nothing_comes_is_ended_by_cause_and_one_that_hangs_on_its_behalf(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    fleet = busy_fleet.fleet
    silent, hanging = (fleet.dispatch(impatient(busy_fleet.order(scripted(SLOW).url))) for _ in range(2))
    begun(busy_fleet, hanging)
    process = busy_fleet.drone.run_process(hanging.run_id)
    process.suspend()
    wait_until(lambda: f"run {hanging.run_id}: no progress for 4 s" in busy_fleet.drone.log(), seconds=60)
    # As the drone does itself when the run has not ended two minutes later.
    process.kill()
    for end in (fleet.ended(silent), fleet.ended(hanging)):
        assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "no_progress", True)
        assert end.reason.startswith("no progress for 4 s during `shell: echo begun; sleep 300`")
        assert survivors(end) == 0


# --- Celery's remote control, and what Flower shows ----------------------------------------------


def shown(state: Any, sent: Dispatch) -> str | None:
    task = state.tasks.get(sent.run_id)
    return task.state if task else None


def test_remote_control_can_look_but_not_shut_down_and_the_broker_refuses_the_drone_nothing(
    busy_fleet: Workshop,
) -> None:
    control = busy_fleet.fleet.broker.celery.control
    control.broadcast("shutdown")
    control.broadcast("pool_shrink", arguments={"n": 1})
    # Broadcasts are read in order; the limit of answers ends the wait for more.
    answers = control.inspect(timeout=60, limit=1).ping()
    assert answers == {busy_fleet.drone.worker: {"ok": "pong"}}
    assert busy_fleet.drone.process is not None
    assert busy_fleet.drone.process.poll() is None
    assert busy_fleet.fleet.server.acl_log() == []


def test_flowers_terminate_and_revoke_end_an_order_with_the_reason(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    fleet, model = busy_fleet.fleet, scripted(DONE)
    waiting = busy_fleet.order(model.url)
    with window(fleet) as state:
        terminated = busy_fleet.submit(scripted(SLOW).url)
        wait_until(lambda: shown(state, terminated) == "STARTED")
        fleet.broker.celery.control.terminate(terminated.run_id)
        assert len(fleet.broker.celery.control.revoke(waiting.run_id, reply=True, limit=1, timeout=60)) == 1
        revoked = fleet.dispatch(waiting)
        ends = [fleet.ended(sent) for sent in (terminated, revoked)]
        wait_until(lambda: shown(state, terminated) == shown(state, revoked) == "REVOKED")
    assert [(end.status, end.exit_status, end.order_at_fault) for end in ends] == [("failed", "canceled", True)] * 2
    assert {end.reason for end in ends} == {"stopped by an operator in Flower"}
    assert [survivors(end) for end in ends] == [0, 0]
    assert model.requests == []


def test_orders_that_succeeded_and_failed_are_shown_so_without_their_content(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    order = busy_fleet.order(scripted(DONE).url)
    project = order.project.model_copy(update={"branch": "a-secret-branch"})
    with window(busy_fleet.fleet) as state:
        done = busy_fleet.submit(scripted(DONE).url)
        wait_until(lambda: shown(state, done) == "SUCCESS")
        failed = busy_fleet.fleet.dispatch(order.model_copy(update={"project": project}))
        wait_until(lambda: shown(state, failed) == "FAILURE")
        succeeded, task = state.tasks[done.run_id], state.tasks[failed.run_id]
    assert succeeded.worker.hostname == busy_fleet.drone.worker
    assert done.envelope not in str(succeeded.info())
    assert task.exception == f"RunFailed('run {failed.run_id} of order {order.order_id} failed: refused')"
    assert "a-secret-branch" not in str(task.info(("exception", "traceback", "args", "result")))


def test_a_fork_server_that_died_during_runs_is_replaced_for_the_next_one(
    busy_fleet: Workshop, scripted: ScriptedFactory, tmp_path: Path
) -> None:
    gates = tmp_path / "first", tmp_path / "second"
    waits = [shell(f"echo begun; until [ -e {gate} ]; do sleep 0.1; done") for gate in gates]
    first, second = (busy_fleet.submit(scripted([each, *DONE]).url) for each in waits)
    begun(busy_fleet, first)
    begun(busy_fleet, second)
    server = busy_fleet.drone.run_process(first.run_id).parent()
    assert server is not None
    server.kill()
    # It waits for a slot: until a run is over whose exit code is unknown.
    third = busy_fleet.submit(scripted(DONE).url)
    for gate, ends in zip(gates, ((first, third), (second,)), strict=True):
        gate.touch()
        assert [busy_fleet.fleet.ended(each, seconds=60).status for each in ends] == ["success"] * len(ends)
