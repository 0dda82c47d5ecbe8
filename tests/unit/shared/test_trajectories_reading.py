"""Reading trajectories: every form that the format has, and everything that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drone.replay.path_mapping import Places
from drone.replay.reading import load, recording_of
from drone.replay.recording import Expected, RecordedCall, Recording
from shared.errors import Invalid
from shared.trajectories import FORMAT, NOT_EXECUTED

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


def test_calls_of_bash_are_calls_of_our_shell() -> None:
    first, second = read(calls("ls", "pwd"), observed(0, **OBSERVED), observed(1, raw_output="/\n")).turns[0].calls

    assert (first.tool, json.loads(first.arguments), first.command) == ("shell", {"command": "ls"}, "ls")
    assert first.expected == Expected("a\n", 0)
    assert second.expected == Expected("/\n", None)


def test_results_find_their_calls_by_id_and_not_by_place() -> None:
    recording = read(calls("ls", "pwd"), observed(1, raw_output="second"), observed(0, raw_output="first"))

    assert [call.expected for call in recording.turns[0].calls] == [Expected("first"), Expected("second")]


def test_our_own_tools_keep_their_names_and_arguments() -> None:
    message = calls("undo_edit", tool="editor")

    call = read(message, observed(content="Done.")).turns[0].calls[0]

    assert (call.tool, json.loads(call.arguments)) == ("editor", {"command": "undo_edit"})
    assert call.expected == Expected("Done.")


def test_one_fenced_block_is_a_call_of_the_shell() -> None:
    for fence in ("mswea_bash_command", "bash"):
        user = {"role": "user", "content": "<returncode>1</returncode>\n<output>\nb\n</output>"}

        call = read(spoken(fenced("ls\npwd", fence)), user).turns[0].calls[0]

        assert call == RecordedCall("shell", '{"command": "ls\\npwd"}', Expected("b\n", 1), command="ls\npwd"), fence


def test_none_or_two_fenced_blocks_are_no_call() -> None:
    for text in ("Nothing to do.", f"{fenced('a')}\n{fenced('b')}"):
        turn = read(spoken(text), {"role": "user", "content": "One command, please."}).turns[0]

        assert (turn.calls, turn.said) == ((), ("One command, please.",)), text


def test_actions_are_found_as_the_recorded_configuration_says() -> None:
    config = {"model": {"action_regex": "<run>(.*?)</run>"}}

    assert read(spoken("So <run> ls </run>"), config=config).turns[0].calls[0].command == "ls"
    assert read(spoken(fenced("ls")), config={"model": {"action_regex": "("}}).turns[0].calls[0].command == "ls"


def test_a_command_that_a_person_typed_is_played_too() -> None:
    typed = {"role": "user", "content": "User command", "extra": {"actions": [{"command": "ls"}]}}

    recording = read(calls("pwd"), observed(0, **OBSERVED), typed, {"role": "user", "content": "", "extra": OBSERVED})

    assert recording.turns[1].calls[0].expected == Expected("a\n", 0)


def test_what_people_said_is_kept_where_they_said_it() -> None:
    said = {"role": "user", "content": "Faster!", "extra": {"interrupt_type": "UserInterruption"}}

    recording = read({"role": "user", "content": "Task"}, said, calls("ls"), observed(0, **OBSERVED), said, EXIT)

    assert (recording.opening, recording.turns[0].said) == (("Task", "Faster!"), ("Faster!",))


def test_the_template_is_taken_off_a_text() -> None:
    cases: list[tuple[str, Expected | None]] = [
        ("<returncode>2</returncode>\n<output>\na\nb\n</output>", Expected("a\nb\n", 2)),
        ("<returncode>0</returncode>\n<output>\n</output>", Expected("", 0)),
        (
            "<exception>Command 'x' timed out after 1 seconds</exception>\n<returncode>-1</returncode>\n"
            "<output>\nhalf</output>",
            Expected("half", timed_out=True),
        ),
        (
            "<returncode>0</returncode>\n<warning>Too much.</warning><output_head>\nab\n</output_head>\n<elided_chars>"
            "\n12 characters elided\n</elided_chars>\n<output_tail>\nyz\n\n</output_tail>",
            Expected("ab", 0, tail="yz\n", elided=12),
        ),
        ('{"returncode": 3, "output": "größe\\n"}', Expected("größe\n", 3)),
        (
            '{"returncode": -1, "output": "", "exception_info": "Command timed out after 1 seconds"}',
            Expected("", timed_out=True),
        ),
        (
            '{"returncode": 0, "output_head": "ab", "output_tail": "yz", "elided_chars": 5, "warning": "Long."}',
            Expected("ab", 0, tail="yz", elided=5),
        ),
        ("a\nb\n(return code 4)", Expected("a\nb\n", 4)),
        ("ab\n[… 1,234 characters elided …]\nyz\n(return code 0)", Expected("ab", 0, tail="yz\n", elided=1234)),
        ("half\n(ended after 1 s; give a longer `timeout`)", Expected("half\n", timed_out=True)),
        ("It went well.", None),
    ]
    wrong = [(content, got) for content, wanted in cases if (got := expected(content)) != wanted]
    assert wrong == []


def test_the_submission_is_what_the_last_command_printed() -> None:
    skipped = {"raw_output": "", "returncode": -1, "exception_info": NOT_EXECUTED}
    turn = read(
        calls("ls", SUBMIT, "pwd"), observed(0, **OBSERVED), observed(1, **skipped), observed(2, **skipped), EXIT
    )

    first, submitting, never = turn.turns[0].calls
    assert (first.executed, submitting.executed, never.executed) == (True, True, False)
    assert submitting.expected == Expected("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nIt.", 0, submits=True)


def test_commands_that_a_person_refused_are_not_run() -> None:
    skipped = {"raw_output": "", "returncode": -1, "exception_info": NOT_EXECUTED}
    refusal = {"role": "user", "content": "No!", "extra": {"interrupt_type": "UserRejection"}}

    assert not read(calls(SUBMIT), observed(0, **skipped), refusal).turns[0].calls[0].executed


def test_the_surroundings_are_those_of_the_recording() -> None:
    environment = {"cwd": "/testbed/", "timeout": 30, "env": {"PAGER": "cat", "a b": "x", "N": 1}}
    config = {"environment": environment, "environment_type": "minisweagent.environments.local.LocalEnvironment"}

    recording = read(calls("ls"), config=config)

    assert (recording.cwd, recording.timeout, recording.environment) == ("/testbed", 30.0, {"PAGER": "cat"})
    assert recording.shell == ("/bin/sh", "-c")


FIELDS = (
    *("info", "config", "environment", "env", "timeout", "cwd", "content"),
    *("tool_calls", "function", "extra", "actions"),
)


def test_a_field_of_another_kind_is_no_reason_to_fall_over() -> None:
    values: list[Any] = [None, 7, "x", [], {}, [[]], [None], "\ud800", True]
    turns = {(path, repr(value)): turns_with(path, value) for path in FIELDS for value in values}
    assert {case: count for case, count in turns.items() if count != 2} == {}


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


def test_what_is_no_trajectory_is_refused_with_the_reason(tmp_path: Path) -> None:
    cases: list[tuple[bytes, str]] = [
        (b"", "not valid JSON"),
        (b'{"trajectory_format": "mini-swe', "not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "is missing"),
        (b'{"messages": []}', "is missing"),
        (b'{"trajectory_format": "mini-swe-agent-1", "messages": []}', "'mini-swe-agent-1'"),
        (b'{"trajectory_format": "mini-swe-agent-2.0", "messages": []}', "'mini-swe-agent-2.0'"),
        (b'{"trajectory_format": null, "messages": []}', "'None'"),
        (b'{"trajectory_format": "mini-swe-agent-1.1"}', "must be a list of objects"),
        (b'{"trajectory_format": "mini-swe-agent-1.1", "messages": [1]}', "must be a list of objects"),
        (b'{"trajectory_format": "mini-swe-agent-1.1", "messages": []}', "no model answers"),
        (b'{"trajectory_format": "mini-swe-agent-1.1", "messages": [{"role": "user"}]}', "no model answers"),
    ]
    for content, why in cases:
        path = tmp_path / "run.traj.json"
        path.write_bytes(content)

        with pytest.raises(Invalid) as refused:
            load(path)

        assert refused.value.code == "E-TRAJECTORY-FORMAT", content
        assert why in refused.value.why, content


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "latin").write_bytes(b'{"a": "\xfc"}')
    (tmp_path / "huge").write_bytes(b"{" * 2000)
    monkeypatch.setattr("drone.replay.reading.MAX_BYTES", 1000)

    whys = {name: why_not(tmp_path / name) for name in ("latin", "huge", "missing", "")}

    assert "not UTF-8" in whys["latin"]
    assert "larger than 1,000 bytes" in whys["huge"]
    assert (whys["missing"], whys[""]) == ("No such file or directory", "Is a directory")


def why_not(path: Path) -> str:
    with pytest.raises(Invalid) as refused:
        load(path)
    assert refused.value.code == "E-TRAJECTORY-FILE"
    return refused.value.why


def test_the_recorded_directory_and_the_workspace_stand_for_each_other() -> None:
    places = Places("/testbed", "/tmp/x/work")

    assert places.here("cd /testbed && ls /testbed/src /testbeds /a/testbed") == (
        "cd /tmp/x/work && ls /tmp/x/work/src /testbeds /a/testbed"
    )
    assert places.there("/tmp/x/work/a.py:1: /tmp/x/worker") == "/testbed/a.py:1: /tmp/x/worker"
    assert json.loads(places.arguments_here('{"path": "/testbed/a", "n": 1}')) == {"path": "/tmp/x/work/a", "n": 1}
    assert places.arguments_here("/testbed {") == "/testbed {"
    assert Places("", "/tmp/x/work").there("/tmp/x/work") == "/tmp/x/work"
