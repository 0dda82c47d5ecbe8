"""A drone's worker takes orders from its queue, carries each out once, and reports what comes of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shared import names
from shared.control import Cancel, Confirm, ControlMessage, Drain, Resend, Say
from shared.events import AssistantStep, Delivered, ErrorStep, RunStarted
from shared.transcripts import messages_of, problems
from tests.support import wait_until
from tests.support.drones import Workshop
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory

SLOW = [shell("echo begun; sleep 300"), {"text": "Done."}]


def test_an_order_is_carried_out_and_every_event_arrives_in_order(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    sent = busy_fleet.submit(scripted([shell("echo new > file.txt"), {"text": "Done."}]).url)
    end = busy_fleet.fleet.ended(sent)
    events = busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)
    assert (end.status, end.exit_status, end.response) == ("success", "stopped", "Done.")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[0].body, RunStarted)
    kinds = [event.body.kind for event in events]
    assert kinds.index("prepared") < kinds.index("user") < kinds.index("assistant")


def test_patch_and_bundle_are_stored_and_the_branch_is_pushed(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    sent = busy_fleet.submit(scripted([shell("echo new > pushed.txt"), {"text": "Done."}]).url)
    busy_fleet.fleet.ended(sent)
    delivered = next(
        event.body
        for event in busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)
        if isinstance(event.body, Delivered)
    )
    branches = subprocess.check_output(["git", "-C", busy_fleet.repository, "branch", "--list", "fleet/*"], text=True)
    assert delivered.pushed
    assert names.branch(sent.order.order_id) in branches
    assert b"+new" in busy_fleet.fleet.blobs[str(delivered.patch_sha256)]
    assert str(delivered.bundle_sha256) in busy_fleet.fleet.blobs


def test_a_late_run_pushes_below_a_name_of_its_own(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    order = busy_fleet.order(scripted([shell("echo late > late.txt"), {"text": "Done."}]).url)
    busy_fleet.fleet.grants[order.run_id] = 409
    sent = busy_fleet.fleet.dispatch(order)
    busy_fleet.fleet.ended(sent)
    delivered = busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)[-2].body
    branches = subprocess.check_output(["git", "-C", busy_fleet.repository, "branch", "--list", "fleet*"], text=True)
    assert isinstance(delivered, Delivered)
    assert delivered.late_ref == names.late_branch(order.order_id, 1)
    assert not delivered.pushed
    assert names.branch(order.order_id) not in branches


def test_no_order_reads_the_work_of_another_project_from_the_drones_own_directories(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    model = scripted([{"text": "Done."}] * 2)
    busy_fleet.fleet.ended(busy_fleet.submit(model.url))
    mirror = next(Path(busy_fleet.drone.config.workspace, "mirrors").glob("*.git"))
    session = next(Path(busy_fleet.drone.config.workspace, "sessions").glob("*/work"))
    order = busy_fleet.order(model.url)
    for url in (f"file://{mirror}", f"file://localhost{session}", str(busy_fleet.drone.home.path)):
        project = order.project.model_copy(update={"git_url": url})
        sent = busy_fleet.submit(model.url, project=project)
        end = busy_fleet.fleet.ended(sent)
        assert (end.exit_status, end.order_at_fault) == ("refused", False)
        assert "leads into the drone's own directories" in end.reason


def test_the_text_of_the_model_is_shown_while_it_streams(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    text = "One word after the other, slowly enough to be seen in pieces."
    model = scripted([{"text": text}], chunk_delay_s=0.05)
    sent = busy_fleet.submit(model.url)
    busy_fleet.fleet.ended(sent)
    pieces = [delta.text for delta in busy_fleet.fleet.deltas(busy_fleet.drone.id) if delta.run_id == sent.run_id]
    assert "".join(pieces) == text
    assert len(pieces) > 2


def test_a_key_that_the_order_carries_leaves_the_drone_nowhere(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    sent = busy_fleet.submit(scripted([{"text": "Your key is sk-order-secret, is it not?"}]).url)
    busy_fleet.fleet.ended(sent)
    events = busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)
    said = [event.body.text for event in events if isinstance(event.body, AssistantStep)]
    assert said == ["Your key is [redacted], is it not?"]
    assert not any("sk-order-secret" in event.model_dump_json() for event in events)


def test_a_copy_of_a_message_starts_nothing_after_the_run(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    model = scripted([{"text": "Done."}])
    sent = busy_fleet.submit(model.url)
    busy_fleet.fleet.ended(sent)
    busy_fleet.fleet.publish(sent)
    wait_until(lambda: busy_fleet.fleet.broker.queue_length(busy_fleet.drone.id) == 0)
    wait_until(lambda: busy_fleet.drone.log().count(f"fleet.run[{sent.run_id}]") >= 3)
    assert busy_fleet.fleet.kinds(sent).count("run_started") == 1
    assert len(model.requests) == 1


def test_a_run_whose_key_is_gone_is_not_claimed(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    model = scripted([{"text": "Done."}])
    order = busy_fleet.order(model.url)
    sent = busy_fleet.fleet.dispatch_without_key(order)
    wait_until(lambda: "is not started: its key is ''" in busy_fleet.drone.log())
    assert not busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)
    assert not busy_fleet.drone.home.run_dir(sent.run_id).exists()
    assert model.requests == []


def test_a_line_about_a_run_names_its_order_and_the_drone(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    model = scripted([{"text": "Done."}])
    sent = busy_fleet.fleet.dispatch_without_key(busy_fleet.order(model.url))

    def line() -> Any:
        lines = [json.loads(each) for each in busy_fleet.drone.log().splitlines(keepends=True) if each.endswith("\n")]
        about = [each for each in lines if each["event"].startswith(f"run {sent.run_id} is not started")]
        return about and about[0]

    found = wait_until(line)
    assert (found["order"], found["run"], found["drone"]) == (sent.order.order_id, sent.run_id, busy_fleet.drone.id)


def test_an_envelope_of_another_order_is_refused_and_reported(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    model = scripted([{"text": "Done."}])
    other = busy_fleet.fleet.sealed(busy_fleet.order(model.url))
    sent = busy_fleet.fleet.dispatch(busy_fleet.order(model.url), envelope=other)
    end = busy_fleet.fleet.ended(sent)
    assert (end.status, end.order_at_fault) == ("failed", False)
    assert "bound to another" in end.reason
    assert busy_fleet.fleet.kinds(sent) == ["run_started", "error", "run_ended"]
    assert model.requests == []


@pytest.mark.parametrize("other", [{"drone_id": "drone1111111"}, {"run_id": "run111111111"}, {"generation": 2}])
def test_an_order_with_other_ids_than_its_envelope_is_not_run(
    busy_fleet: Workshop, scripted: ScriptedFactory, other: dict[str, Any]
) -> None:
    model = scripted([{"text": "Done."}])
    order = busy_fleet.order(model.url)
    text = order.model_copy(update=other).model_dump_json()
    sent = busy_fleet.fleet.dispatch(order, envelope=busy_fleet.fleet.sealed(order, text))
    end = busy_fleet.fleet.ended(sent)
    assert end.status == "failed"
    assert "its content has another" in end.reason
    assert model.requests == []


def test_a_branch_that_does_not_exist_fails_the_order_with_a_sentence(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    order = busy_fleet.order(scripted([{"text": "Done."}]).url)
    project = order.project.model_copy(update={"branch": "nowhere"})
    sent = busy_fleet.fleet.dispatch(order.model_copy(update={"project": project}))
    end = busy_fleet.fleet.ended(sent)
    assert (end.status, end.order_at_fault) == ("failed", True)
    assert 'no branch "nowhere"' in end.reason


def test_a_failing_setup_command_ends_the_run_before_the_model_is_asked(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    model = scripted([{"text": "Done."}])
    order = busy_fleet.order(model.url)
    project = order.project.model_copy(update={"setup": ("echo preparing; exit 3",)})
    sent = busy_fleet.fleet.dispatch(order.model_copy(update={"project": project}))
    end = busy_fleet.fleet.ended(sent)
    assert "failed with exit code 3" in end.reason
    assert model.requests == []


def test_a_failing_verify_command_fails_the_order_with_its_work_kept(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    order = busy_fleet.order(scripted([shell("echo bad > bad.txt"), {"text": "Done.", "repeat": True}]).url)
    project = order.project.model_copy(update={"verify": ("grep good bad.txt",)})
    sent = busy_fleet.fleet.dispatch(order.model_copy(update={"project": project}))
    end = busy_fleet.fleet.ended(sent)
    delivered = busy_fleet.fleet.events(busy_fleet.drone.id, sent.run_id)[-2].body
    assert (end.status, end.exit_status) == ("failed", "verification_failed")
    assert isinstance(delivered, Delivered)
    assert delivered.patch_sha256 is not None


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


def test_a_cancel_leaves_the_inbox_once_a_beat_says_that_it_was_acted_on(
    busy_fleet: Workshop, scripted: ScriptedFactory
) -> None:
    message = ControlMessage(id=names.new_id(), body=Cancel(run_id=names.new_id(), generation=1))
    busy_fleet.fleet.tell(busy_fleet.drone.id, message)
    wait_until(lambda: message.id in busy_fleet.fleet.beats(busy_fleet.drone.id)[-1].done)
    busy_fleet.fleet.broker.redis.hdel(names.inbox_key(busy_fleet.drone.id), message.id)
    wait_until(lambda: message.id not in busy_fleet.fleet.beats(busy_fleet.drone.id)[-1].done)


def test_events_that_were_lost_are_sent_again_from_the_journal(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    sent = busy_fleet.submit(scripted([{"text": "Done."}]).url)
    busy_fleet.fleet.ended(sent)
    known = busy_fleet.fleet.kinds(sent)
    busy_fleet.fleet.broker.redis.xtrim(names.events_stream(busy_fleet.drone.id), maxlen=0)
    busy_fleet.fleet.tell(
        busy_fleet.drone.id, ControlMessage(id=names.new_id(), body=Resend(run_id=sent.run_id, from_seq=1))
    )
    wait_until(lambda: busy_fleet.fleet.kinds(sent) == known)


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


def test_the_rights_of_the_drones_own_user_are_enough(busy_fleet: Workshop, scripted: ScriptedFactory) -> None:
    sent = busy_fleet.submit(scripted([{"text": "Done."}]).url)
    busy_fleet.fleet.ended(sent)
    assert busy_fleet.fleet.server.acl_log() == []


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


def test_what_a_person_says_reaches_the_model_after_the_running_tool(
    busy_fleet: Workshop, scripted: ScriptedFactory, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    model = scripted([shell(f"echo begun; while [ ! -e '{go}' ]; do sleep 0.1; done"), {"text": "Done."}])
    sent = busy_fleet.submit(model.url)
    wait_until(lambda: busy_fleet.printed(sent, "begun"))
    message = ControlMessage(id=names.new_id(), body=Say(run_id=sent.run_id, text="Mind the tests."))
    busy_fleet.fleet.tell(busy_fleet.drone.id, message)
    wait_until(lambda: message.id in busy_fleet.fleet.beats(busy_fleet.drone.id)[-1].done)
    go.touch()
    busy_fleet.fleet.ended(sent)
    assert [message["content"] for message in model.requests[1]["messages"]][-1] == "Mind the tests."
