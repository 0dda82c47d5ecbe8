"""A drone's worker takes orders from its queue, carries each out once, and reports what comes of it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from shared import names
from shared.control import Cancel, Confirm, ControlMessage, Drain, Resend
from shared.events import Delivered, ErrorStep, RunStarted
from shared.transcripts import messages_of, problems
from tests.support import wait_until
from tests.support.drones import Workshop
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory

SLOW = [shell("echo begun; sleep 300"), {"text": "Done."}]


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
    fleet.tell(drone, ControlMessage(id=names.new_id(), body=Resend(run_id=sent.run_id, from_seq=1)))
    wait_until(lambda: fleet.kinds(sent) == kinds)


def test_a_run_whose_key_is_gone_is_not_claimed_and_the_log_names_its_order(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    model = scripted([{"text": "Done."}])
    sent = busy_fleet.fleet.dispatch_without_key(busy_fleet.order(model.url))

    def line() -> Any:
        lines = [json.loads(each) for each in busy_fleet.drone.log().splitlines(keepends=True) if each.endswith("\n")]
        about = [each for each in lines if each["event"].startswith(f"run {sent.run_id} is not started")]
        return about and about[0]

    found = wait_until(line)
    assert (found["order"], found["run"], found["drone"]) == (sent.order.order_id, sent.run_id, busy_fleet.drone.id)
    assert not busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)
    assert not busy_fleet.drone.home.run_dir(sent.run_id).exists()
    assert model.requests == []


def test_an_envelope_of_another_order_or_with_other_ids_is_refused_and_reported(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    fleet, model = busy_fleet.fleet, scripted([{"text": "Done."}])
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


def test_a_copy_of_a_message_starts_nothing_after_the_run(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    model = scripted([{"text": "Done."}])
    sent = busy_fleet.submit(model.url)
    busy_fleet.fleet.ended(sent)
    busy_fleet.fleet.publish(sent)
    wait_until(lambda: busy_fleet.fleet.broker.queue_length(busy_fleet.drone.id) == 0)
    wait_until(lambda: busy_fleet.drone.log().count(f"fleet.run[{sent.run_id}]") >= 3)
    assert busy_fleet.fleet.kinds(sent).count("run_started") == 1
    assert len(model.requests) == 1


def test_a_cancel_ends_the_running_command_and_sends_a_receipt(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    sent = busy_fleet.submit(scripted(SLOW).url)
    wait_until(lambda: busy_fleet.printed(sent, "begun"))
    cancel = Cancel(run_id=sent.run_id, generation=1, reason="not needed any more")
    busy_fleet.fleet.tell(busy_fleet.drone.id, ControlMessage(id=names.new_id(), body=cancel))
    end = busy_fleet.fleet.ended(sent)
    assert (end.status, end.exit_status, end.reason) == ("preempted", "canceled", "not needed any more")
    assert end.receipt is not None
    assert end.receipt.found > 0
    assert end.receipt.survivors == 0
    assert not end.give_back


def test_an_ended_run_stays_in_the_beats_until_it_is_confirmed(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    sent = busy_fleet.submit(scripted([{"text": "Done."}]).url)
    busy_fleet.fleet.ended(sent)
    wait_until(lambda: busy_fleet.run_in_beat(sent, ended=True))
    last = len(busy_fleet.fleet.kinds(sent))
    confirm = Confirm(run_id=sent.run_id, last_seq=last)
    busy_fleet.fleet.tell(busy_fleet.drone.id, ControlMessage(id=names.new_id(), body=confirm))
    wait_until(lambda: not busy_fleet.run_in_beat(sent, ended=True))
    run_dir = busy_fleet.drone.home.run_dir(sent.run_id)
    assert run_dir.exists()
    assert not (run_dir / "journal.jsonl").exists()


def test_a_run_whose_order_another_generation_holds_falls_silent(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    sent = busy_fleet.submit(scripted(SLOW).url)
    wait_until(lambda: busy_fleet.printed(sent, "begun"))
    busy_fleet.fleet.broker.revoke_run(busy_fleet.drone.id, sent.run_id, 1)
    wait_until(lambda: not busy_fleet.run_in_beat(sent), seconds=60)
    assert busy_fleet.fleet.kinds(sent)[-1] == "tool_call"


def test_a_run_process_that_is_killed_gets_a_last_event_all_the_same(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    sent = busy_fleet.submit(scripted(SLOW).url)
    wait_until(lambda: busy_fleet.printed(sent, "begun"))
    busy_fleet.drone.run_process(sent.run_id).kill()
    end = busy_fleet.fleet.ended(sent)
    bodies = [event.body for event in busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)]
    error = bodies[-2]
    assert (end.status, end.order_at_fault) == ("failed", False)
    assert problems(messages_of(bodies)) == []
    assert isinstance(error, ErrorStep)
    assert "signal 9" in error.detail
    assert end.receipt is not None
    assert end.receipt.survivors == 0


def test_remote_control_can_look_but_not_shut_down(busy_fleet: Workshop) -> None:
    control = busy_fleet.fleet.broker.celery.control
    control.broadcast("shutdown")
    control.broadcast("pool_shrink", arguments={"n": 1})
    # Broadcasts are read in order; the limit of answers ends the wait for more.
    answers = control.inspect(timeout=60, limit=1).ping()
    assert answers == {busy_fleet.drone.worker: {"ok": "pong"}}
    assert busy_fleet.drone.process is not None
    assert busy_fleet.drone.process.poll() is None


def test_a_drained_drone_takes_nothing_until_it_is_told_to_go_on(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    drone = busy_fleet.drone.id
    busy_fleet.fleet.tell(drone, ControlMessage(id=names.new_id(), body=Drain(on=True)))
    wait_until(lambda: busy_fleet.fleet.beats(drone)[-1].draining)
    wait_until(lambda: not busy_fleet.drone.consumes())
    sent = busy_fleet.submit(scripted([{"text": "Done."}]).url)
    wait_until(lambda: busy_fleet.fleet.broker.queue_length(drone) == 1)
    busy_fleet.fleet.tell(drone, ControlMessage(id=names.new_id(), body=Drain(on=False)))
    assert busy_fleet.fleet.ended(sent).status == "success"
