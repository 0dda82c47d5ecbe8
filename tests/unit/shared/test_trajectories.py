"""Trajectories in the format of mini-swe-agent: what a document says of a run, and every form that is read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from drone.agent.in_memory import EchoToolbox
from drone.agent.values import ToolResult, ToolSpec
from drone.replay.path_mapping import Places
from drone.replay.recording import Expected, RecordedCall, Recording
from drone.replay.trajectory_file import load, recording_of
from shared import events
from shared.errors import Invalid, Submitted
from shared.messages import ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.trajectories import FORMAT, NOT_EXECUTED, RunFacts, trajectory
from tests.support.scripted import Loop, submits

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FACTS = RunFacts("order1", "run1", "openai/x", "build", {"max_iterations": 50, "command_timeout": 120}, "0.1.0")
LIST = ToolCall(id="c1", name="shell", arguments='{"command": "ls"}')
WRITE = ToolCall(id="c2", name="file_write", arguments='{"path": "a", "content": "b"}')
PROMPT = events.UserStep(text="Mend it.\n\n<situation>\nWorkspace: /drones/one/work\n</situation>\n", source="prompt")
ENDED = events.RunEnded(status="success", exit_status="submitted", reason="Done.", response="It is mended.")


class Submitting(EchoToolbox):
    """A toolbox by which every call submits the work."""

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec("submit", "End."), ToolSpec("shell", "Run a command.")]

    def execute(self, call: ToolCall) -> ToolResult:
        raise Submitted(outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", "It is mended."))


def made(*bodies: events.Body) -> dict[str, Any]:
    document = trajectory(FACTS, ((AT, body) for body in bodies))
    assert json.loads(json.dumps(document)) == document
    return document


def answer(*calls: ToolCall, cost: float | None = 0.5, text: str = "I look.") -> events.AssistantStep:
    return events.AssistantStep(
        text=text, tool_calls=calls, usage=events.Usage(cost_usd=cost), model="x", finish_reason="stop"
    )


def result(call: ToolCall, output: str, code: int | None = None, **facts: Any) -> events.ToolResultStep:
    facts = {"execution": "answered", "note": f"(return code {code})" if code is not None else "", **facts}
    return events.ToolResultStep(call_id=call.id, output=output, return_code=code, **facts)


def extra_of(*bodies: events.Body) -> dict[str, Any]:
    """What the last message of these steps says beside its text."""
    extra: dict[str, Any] = made(*bodies)["messages"][-1]["extra"]
    return extra


def test_a_run_becomes_a_document_of_the_format() -> None:
    document = made(
        events.RunStarted(boot_id="b", sandbox="bwrap"),
        events.Prepared(base_commit="a" * 40, workspace="/drones/one/work"),
        PROMPT,
        events.ReasoningStep(text="Hm."),
        answer(LIST, WRITE),
        events.ToolCallStep(call_id="c1", tool="shell"),
        result(LIST, "a\nb\n(return code 0)", 0),
        result(WRITE, "Wrote a."),
        ENDED,
    )

    assert document["trajectory_format"] == FORMAT == "mini-swe-agent-1.1"
    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "tool", "tool", "exit"]
    assert document["info"]["model_stats"] == {"instance_cost": 0.0, "api_calls": 1}
    assert (document["info"]["exit_status"], document["info"]["submission"]) == ("Submitted", "It is mended.")
    assert document["info"]["dronefleet"]["base_commit"] == "a" * 40
    assert document["info"]["config"]["environment"] == {"cwd": "/drones/one/work", "env": {}, "timeout": 120}
    assert document["info"]["config"]["environment_type"] == "dronefleet.bwrap"
    # The directory is that of the workspace, and not one that a prompt names.
    prompt = events.UserStep(text="Workspace: /etc\n", source="prompt")
    document = made(events.Prepared(workspace="/drones/one/work"), prompt, answer(LIST))
    assert document["info"]["config"]["environment"]["cwd"] == "/drones/one/work"
    ended = ENDED.model_copy(update={"stats": events.Stats(cost_usd=None)})
    document = made(PROMPT, answer(cost=0.1), answer(cost=None), ended)
    assert document["info"]["model_stats"] == {"instance_cost": None, "api_calls": 2}
    assert document["info"]["dronefleet"]["cost"].startswith("unknown")
    assert document["messages"][2]["extra"]["cost"] is None


def test_the_cost_is_that_of_every_step_that_was_paid_for() -> None:
    usage = events.Usage(cost_usd=0.25)
    child = events.ChildStep(call_id="c1", step=answer(cost=1.0).model_dump(mode="json"))
    silent = child.model_copy(update={"step": {"kind": "tool_call"}})
    broken_off, reviewer = events.ChargeStep(about="broken_off", usage=usage), events.ReviewerStep(usage=usage)
    steps = (answer(), child, silent, broken_off, reviewer)
    ended = ENDED.model_copy(update={"stats": events.Stats(cost_usd=4.0)})
    for bodies, cost in ((steps, 2.0), ((*steps, events.RunStarted(boot_id="b", sandbox="bwrap"), ended), 6.0)):
        assert made(*bodies)["info"]["model_stats"] == {"instance_cost": cost, "api_calls": 1}
    unreadable = events.ChildStep(call_id="c1", step={"kind": "assistant", "usage": 1})
    assert made(*steps, unreadable)["info"]["model_stats"]["instance_cost"] is None


def test_shell_calls_are_actions_and_all_calls_stay_native() -> None:
    message = made(answer(LIST, WRITE))["messages"][0]
    assert message["extra"]["actions"] == [{"command": "ls", "tool_call_id": "c1"}]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["shell", "file_write"]
    assert (message["extra"]["cost"], message["extra"]["timestamp"]) == (0.5, AT.timestamp())


def test_an_observation_has_its_output_without_the_template() -> None:
    message = made(answer(LIST), result(LIST, "a\nb\n(return code 2)", 2))["messages"][-1]

    assert message["content"] == "a\nb\n(return code 2)"
    assert (message["tool_call_id"], message["extra"]["raw_output"]) == ("c1", "a\nb\n")
    assert (message["extra"]["returncode"], message["extra"]["exception_info"]) == (2, "")
    note = "(ended after 3 s; give a longer `timeout`)"
    extra = extra_of(answer(LIST), result(LIST, f"half\n{note}", execution="timed_out", note=note))
    assert (extra["raw_output"], extra["returncode"], extra["execution"]) == ("half\n", -1, "timed_out")
    assert extra["exception_info"].startswith("ended after 3 s")
    extra = extra_of(answer(LIST), result(LIST, "Not now.", execution="held_back", note="Not now."))
    assert (extra["raw_output"], extra["returncode"], extra["exception_info"]) == ("", -1, NOT_EXECUTED)
    # A command that prints the words for a call that was not run was run.
    output = "This call was not run: printed by a command.\n"
    extra = extra_of(answer(LIST), result(LIST, f"{output}(return code 0)", 0))
    assert (extra["raw_output"], extra["returncode"], extra["exception_info"]) == (output, 0, "")


@pytest.mark.parametrize("submits_by", ["submit", "shell"])
def test_the_call_that_submitted_says_that_it_was_run_as_the_loop_recorded_it(submits_by: str) -> None:
    reply = submits("It is mended.")
    reply["tool_calls"][0]["name"] = submits_by
    loop = Loop([reply])
    loop.toolbox = loop.agent.toolbox = Submitting()
    loop.run()
    observation = made(*loop.recorder.bodies)["messages"][-1]
    extra = observation["extra"]
    assert (observation["content"], extra["execution"], extra["returncode"]) == ("Submitted.", "submitted", 0)
    assert extra["exception_info"] == ""


def test_the_end_is_said_in_the_words_of_the_format() -> None:
    for ours, theirs in (("stopped", "Submitted"), ("cost_limit", "LimitsExceeded"), ("model_error", "model_error")):
        document = made(ENDED.model_copy(update={"exit_status": ours}))
        assert document["info"]["exit_status"] == document["messages"][-1]["extra"]["exit_status"] == theirs, ours
        assert document["info"]["dronefleet"]["exit_status"] == ours, ours


def test_thinking_steering_and_compactions_are_in_their_places() -> None:
    messages = made(
        PROMPT,
        events.ReasoningStep(text="Hm."),
        answer(LIST),
        result(LIST, "(return code 0)", 0),
        events.UserStep(text="Faster!", source="steer"),
        events.CompactionStep(summary="So far so good."),
        events.Phase(name="working"),
        answer(text="Done."),
    )["messages"]

    assert messages[1]["reasoning_content"] == "Hm."
    assert (messages[3]["content"], messages[3]["extra"]["source"]) == ("Faster!", "steer")
    assert "So far so good." in messages[4]["content"]
    assert "reasoning_content" not in messages[5]


SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
OBSERVED = {"raw_output": "a\n", "returncode": 0, "exception_info": ""}
EXIT = {"role": "exit", "content": "It.", "extra": {"exit_status": "Submitted", "submission": "It."}}
Doc = dict[str, Any]


def read(*messages: Doc, **info: Any) -> Recording:
    return recording_of({"trajectory_format": FORMAT, "messages": list(messages), "info": info})


def calls(*commands: str, tool: str = "bash") -> Doc:
    """An assistant message in the tool-call form."""
    made = [
        {"id": f"c{at}", "function": {"name": tool, "arguments": json.dumps({"command": command})}}
        for at, command in enumerate(commands)
    ]
    return {"role": "assistant", "content": "I look.", "tool_calls": made}


def spoken(text: str, **extra: Any) -> Doc:
    return {"role": "assistant", "content": text, "extra": extra}


def fenced(command: str, fence: str = "mswea_bash_command") -> str:
    return f"First this.\n\n```{fence}\n{command}\n```"


def observed(at: int = 0, content: str = "", **extra: Any) -> Doc:
    return {"role": "tool", "tool_call_id": f"c{at}", "content": content, "extra": extra}


def expected(content: str) -> Expected | None:
    """What an observation without `extra` comes to."""
    return read(calls("ls"), observed(content=content)).turns[0].calls[0].expected


def test_calls_of_bash_are_calls_of_our_shell_and_find_their_results_by_id() -> None:
    first, second = read(calls("ls", "pwd"), observed(1, raw_output="/\n"), observed(0, **OBSERVED)).turns[0].calls
    assert (first.tool, json.loads(first.arguments), first.command) == ("shell", {"command": "ls"}, "ls")
    assert (first.expected, second.expected) == (Expected("a\n", 0), Expected("/\n", None))
    own = read(calls("undo_edit", tool="editor"), observed(content="Done.")).turns[0].calls[0]
    assert (own.tool, json.loads(own.arguments)) == ("editor", {"command": "undo_edit"})
    assert own.expected == Expected("Done.")


def test_one_fenced_block_is_a_call_of_the_shell_and_none_or_two_are_none() -> None:
    for fence in ("mswea_bash_command", "bash"):
        user = {"role": "user", "content": "<returncode>1</returncode>\n<output>\nb\n</output>"}
        call = read(spoken(fenced("ls\npwd", fence)), user).turns[0].calls[0]
        assert call == RecordedCall("shell", '{"command": "ls\\npwd"}', Expected("b\n", 1), command="ls\npwd"), fence
    for text in ("Nothing to do.", f"{fenced('a')}\n{fenced('b')}"):
        turn = read(spoken(text), {"role": "user", "content": "One command, please."}).turns[0]
        assert (turn.calls, turn.said) == ((), ("One command, please.",)), text
    # Or whatever the recorded configuration says.
    config = {"model": {"action_regex": "<run>(.*?)</run>"}}
    assert read(spoken("So <run> ls </run>"), config=config).turns[0].calls[0].command == "ls"
    assert read(spoken(fenced("ls")), config={"model": {"action_regex": "("}}).turns[0].calls[0].command == "ls"


def test_what_people_said_and_typed_is_kept_where_they_did_and_what_they_refused_is_not_run() -> None:
    said = {"role": "user", "content": "Faster!", "extra": {"interrupt_type": "UserInterruption"}}
    recording = read({"role": "user", "content": "Task"}, said, calls("ls"), observed(0, **OBSERVED), said, EXIT)
    assert (recording.opening, recording.turns[0].said) == (("Task", "Faster!"), ("Faster!",))
    typed = {"role": "user", "content": "User command", "extra": {"actions": [{"command": "ls"}]}}
    recording = read(calls("pwd"), observed(0, **OBSERVED), typed, {"role": "user", "content": "", "extra": OBSERVED})
    assert recording.turns[1].calls[0].expected == Expected("a\n", 0)
    skipped = {"raw_output": "", "returncode": -1, "exception_info": NOT_EXECUTED}
    refusal = {"role": "user", "content": "No!", "extra": {"interrupt_type": "UserRejection"}}
    assert not read(calls(SUBMIT), observed(0, **skipped), refusal).turns[0].calls[0].executed


def test_the_template_is_taken_off_a_text() -> None:
    cases: dict[str, Expected | None] = {
        "<returncode>2</returncode>\n<output>\na\nb\n</output>": Expected("a\nb\n", 2),
        "<exception>Command 'x' timed out after 1 seconds</exception>\n<returncode>-1</returncode>\n<output>\nhalf"
        "</output>": Expected("half", timed_out=True),
        "<returncode>0</returncode>\n<warning>Too much.</warning><output_head>\nab\n</output_head>\n<elided_chars>"
        "\n12 characters elided\n</elided_chars>\n<output_tail>\nyz\n\n</output_tail>": Expected(
            "ab", 0, tail="yz\n", elided=12
        ),
        '{"returncode": 3, "output": "größe\\n"}': Expected("größe\n", 3),
        '{"returncode": -1, "output": "", "exception_info": "Command timed out after 1 s"}': Expected(
            "", timed_out=True
        ),
        '{"returncode": 0, "output_head": "ab", "output_tail": "yz", "elided_chars": 5}': Expected(
            "ab", 0, tail="yz", elided=5
        ),
        "ab\n[… 1,234 characters elided …]\nyz\n(return code 0)": Expected("ab", 0, tail="yz\n", elided=1234),
        "half\n(ended after 1 s; give a longer `timeout`)": Expected("half\n", timed_out=True),
        "It went well.": None,
    }
    for content, wanted in cases.items():
        assert expected(content) == wanted, content


def test_the_submission_is_what_the_last_command_printed() -> None:
    skipped = {"raw_output": "", "returncode": -1, "exception_info": NOT_EXECUTED}
    seen = observed(0, **OBSERVED), observed(1, **skipped), observed(2, **skipped)
    first, submitting, never = read(calls("ls", SUBMIT, "pwd"), *seen, EXIT).turns[0].calls
    assert (first.executed, submitting.executed, never.executed) == (True, True, False)
    assert submitting.expected == Expected("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nIt.", 0, submits=True)


def test_the_surroundings_are_those_of_the_recording() -> None:
    environment = {"cwd": "/testbed/", "timeout": 30, "env": {"PAGER": "cat", "a b": "x", "N": 1}}
    config = {"environment": environment, "environment_type": "minisweagent.environments.local.LocalEnvironment"}

    recording = read(calls("ls"), config=config)
    assert (recording.cwd, recording.timeout, recording.environment) == ("/testbed", 30.0, {"PAGER": "cat"})
    assert recording.shell == ("/bin/sh", "-c")
    places = Places("/testbed", "/tmp/x/work")
    assert places.here("cd /testbed && ls /testbed/src /testbeds /a/testbed") == (
        "cd /tmp/x/work && ls /tmp/x/work/src /testbeds /a/testbed"
    )
    assert places.there("/tmp/x/work/a.py:1: /tmp/x/worker") == "/testbed/a.py:1: /tmp/x/worker"
    assert json.loads(places.arguments_here('{"path": "/testbed/a", "n": 1}')) == {"path": "/tmp/x/work/a", "n": 1}


FIELDS = ["info", "config", "environment", "env", "timeout", "cwd", "content", "tool_calls", "function", "extra"]


def test_a_field_of_another_kind_is_no_reason_to_fall_over() -> None:
    for path, value in product([*FIELDS, "actions"], (None, 7, "x", [], {}, [[]], [None], "\ud800")):
        assert turns_with(path, value) == 2, (path, value)


def turns_with(path: str, value: Any) -> int:
    """The number of turns in a document in which every field of this name has this value."""
    message = {**calls("ls"), "extra": {"actions": [{"command": "ls"}]}}
    environment = {"cwd": "/x", "timeout": 1, "env": {}}
    document: Doc = {
        "trajectory_format": FORMAT,
        "messages": [message, observed(0, **OBSERVED), spoken(fenced("ls")), observed(content="{}"), dict(EXIT)],
        "info": {"config": {"environment": environment, "model": {}}},
    }
    holders: list[Doc] = [document, document["info"], document["info"]["config"], environment, message]
    holders += [message["tool_calls"][0], *document["messages"]]
    [holder.update({path: value}) for holder in holders if path in holder]
    return len(recording_of(document).turns)


def test_what_is_no_trajectory_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drone.replay.trajectory_file.MAX_BYTES", 200_000)
    path = tmp_path / "run.traj.json"
    cases: list[tuple[bytes, str, str]] = [
        (b"", "FORMAT", "not valid JSON"),
        (b"[" * 100_000, "FORMAT", "nested too deeply"),
        (b"[]", "FORMAT", "is missing"),
        (b'{"messages": []}', "FORMAT", "is missing"),
        (b'{"trajectory_format": "mini-swe-agent-1", "messages": []}', "FORMAT", "'mini-swe-agent-1'"),
        (b'{"trajectory_format": "mini-swe-agent-1.1", "messages": [1]}', "FORMAT", "must be a list of objects"),
        (b'{"trajectory_format": "mini-swe-agent-1.1", "messages": [{"role": "user"}]}', "FORMAT", "no model answers"),
        (b'{"a": "\xfc"}', "FILE", "not UTF-8"),
        (b"{" * 200_001, "FILE", "larger than 200,000 bytes"),
    ]
    for content, code, why in cases:
        path.write_bytes(content)
        with pytest.raises(Invalid) as refused:
            load(path)
        assert (refused.value.code, why in refused.value.why) == (f"E-TRAJECTORY-{code}", True), content[:99]
    for missing, why in ((tmp_path / "missing", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(Invalid) as refused:
            load(missing)
        assert (refused.value.code, refused.value.why) == ("E-TRAJECTORY-FILE", why)
