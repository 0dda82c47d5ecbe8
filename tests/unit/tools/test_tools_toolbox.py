"""The toolbox: what a mode may do, how a call is checked, and how a run is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.agent.values import ModelCallFailed, ToolResult
from drone.tools.shell import SUBMIT_LINE
from drone.tools.spawn import SpawnChild
from shared.errors import FleetFault, NotFound, OrderError, Preempted, Submitted
from shared.messages import ToolCall
from shared.outcome import ExitStatus
from tests.support.command_time import time_is_up_when
from tests.support.toolboxes import Call, MadeTool, called, toolbox

ALL = ["file_read", "grep", "glob", "web_fetch", "file_write", "editor", "shell", "submit"]
WORKING = ("build", "test", "ship", "develop")
READING = ["file_read", "grep", "glob", "web_fetch"]


def test_a_mode_that_works_has_all_tools(workspace: Path) -> None:
    names = {mode: [spec.name for spec in toolbox(workspace, mode).specs()] for mode in WORKING}
    assert names == dict.fromkeys(WORKING, ALL)


def test_plan_can_read_and_submit_and_nothing_else(workspace: Path) -> None:
    tools = toolbox(workspace, "plan")
    assert [spec.name for spec in tools.specs()] == [*READING, "submit"]
    assert "unknown tool 'shell'" in called(tools, "shell", command="touch x").output
    assert list(workspace.iterdir()) == []
    # Nor may what comes from elsewhere change anything.
    foreign = [MadeTool("look_up", read_only=True), MadeTool("deploy")]
    tools = toolbox(workspace, "plan", record_todo=print, spawn=lambda *_: ToolResult(""), foreign=foreign)
    names = [spec.name for spec in tools.specs()]
    assert names == [*READING, "todo", "spawn", "submit", "look_up"]
    assert tools.read_only == set(names)


def test_schemas_are_plain_objects_that_every_provider_takes(workspace: Path) -> None:
    tools = toolbox(workspace, record_todo=print, spawn=lambda *_: ToolResult(""))
    schemas = {spec.name: spec.parameters for spec in tools.specs()}

    assert schemas["shell"]["required"] == ["command"]
    assert not any(word in str(schemas) for word in ("anyOf", "$ref", "$defs", "title"))
    assert {schema["type"] for schema in schemas.values()} == {"object"}
    assert toolbox(workspace).specs() == toolbox(workspace).specs()


WRONG_USE = [
    ("fly", "{}", "available tools: file_read, grep, glob, web_fetch, file_write, editor, shell, submit"),
    ("shell", "{not json", "are not JSON"),
    ("shell", '["ls"]', "one JSON object"),
    ("shell", "{}", "`command` is required"),
    ("shell", '{"command": "ls", "cwd": "/"}', "unknown argument `cwd`"),
    ("shell", '{"command": "ls", "timeout": -1}', "`timeout`"),
    ("shell", '{"command": 7}', "`command`"),
    ("file_read", '{"mode": "smell"}', "'view', 'lines', 'search' or 'find'"),
    ("file_read", '{"mode": "lines", "path": "x"}', "start_line"),
    ("file_read", '{"mode": "search"}', "search_pattern"),
    ("grep", '{"pattern": "x", "path": "nowhere"}', "'nowhere' not found"),
    ("grep", '{"pattern": "("}', "fix the pattern"),
    ("grep", '{"pattern": "x", "glob": "{a"}', "unclosed brace"),
    ("grep", '{"pattern": ""}', "`pattern`"),
    ("glob", '{"pattern": "*", "path": "nowhere"}', "is not a directory"),
    ("glob", '{"pattern": "*", "sort": "size"}', "'newest' or 'name'"),
    ("editor", '{"command": "str_replace"}', "`path` is required"),
    ("editor", '{"command": "str_replace", "path": "gone", "old_str": "a", "new_str": "b"}', "'gone' not found"),
    ("editor", '{"command": "insert", "path": "gone", "insert_line": 1, "new_str": "b"}', "'gone' not found"),
    ("file_write", '{"path": "", "content": ""}', "`path`"),
]
"""Tool, arguments, and what the answer says about them."""


def test_wrong_use_is_answered_in_one_sentence_that_says_how_to_mend_it(workspace: Path) -> None:
    for name, arguments, words in WRONG_USE:
        result = toolbox(workspace).execute(ToolCall(id="1", name=name, arguments=arguments))
        assert (result.is_error, result.output.startswith("Error: "), len(result.output) < 400) == (True, True, True)
        assert words in result.output


HUGE = 99999999999999999999
ABSURD = [
    ("file_read", {"mode": "lines", "path": "a.txt", "start_line": 2, "end_line": HUGE}, "     2\ttwo"),
    ("file_read", {"mode": "lines", "path": "a.txt", "start_line": HUGE}, "(the file has fewer than"),
    ("file_read", {"mode": "lines", "path": "a.txt", "start_line": HUGE, "end_line": HUGE + 1}, "(the file has fewer"),
    ("file_read", {"mode": "lines", "path": "a.txt", "start_line": 1e30}, "Error: file_read: `start_line`"),
    ("file_read", {"mode": "search", "search_pattern": "\ud800"}, "Error: file_read failed: ValidationError"),
    ("file_read", {"mode": "find", "search_pattern": "\ud800"}, "Error: file_read failed: ValidationError"),
    ("file_read", {"path": "d" * 200_000}, "Error: ddd"),
    ("grep", {"pattern": "x", "path": "/".join(["d" * 200] * 30)}, "File name too long"),
    ("grep", {"pattern": "x", "max_results": HUGE}, "Error: grep: `max_results`"),
    ("grep", {"pattern": "x" * 200_000}, "fix the pattern"),
    ("file_read", {"mode": "search", "search_pattern": "\N{GRINNING FACE}" * 20_000}, "fix the pattern"),
    ("grep", {"pattern": "x", "glob": "x" * 200_000}, "fix the pattern"),
    ("glob", {"pattern": "{a," * 100_000}, "fix the pattern"),
    ("glob", {"pattern": "*", "path": "x/" * 3000}, "File name too long"),
    (
        "editor",
        {"command": "insert", "path": "a.txt", "insert_line": HUGE, "new_str": "z"},
        "insert_line must be 1 to 3",
    ),
    ("editor", {"command": "insert", "path": "a.txt", "new_str": "x"}, "requires"),
    ("editor", {"command": "str_replace", "path": "a.txt", "old_str": "x"}, "requires"),
    ("shell", {"command": "true", "timeout": 1e308}, "Error: shell: `timeout`"),
    ("web_fetch", {"url": "http://[::1"}, "Error: "),
]
"""Tool, arguments, and what the answer has."""


def test_no_value_of_an_argument_raises_and_no_answer_repeats_it_at_length(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    wrong = {}
    for name, arguments, words in ABSURD:
        output = call(name, **arguments).output
        if words not in output or len(output) > 600:
            wrong[name, str(arguments)[:80]] = output[:200]
    assert wrong == {}


class HasNoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError


RAISED = [
    (ValueError("Stop argument for islice()\nmore"), "ValueError: Stop argument for islice()"),
    (KeyError("x"), "KeyError: 'x'"),
    (RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth exceeded"),
    (MemoryError(), "MemoryError"),
    (AssertionError(), "AssertionError"),
    (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), "UnicodeEncodeError: "),
    (ModuleNotFoundError("No module named 'x'"), "ModuleNotFoundError: No module named 'x'"),
    (NotFound("task T-1 not found", code="E-TASK-404"), "NotFound: task T-1 not found"),
    (RuntimeError("\0 and \ud800"), "RuntimeError: \N{SYMBOL FOR NULL} and ?"),
    (ValueError("x" * 100_000), "ValueError: xxx"),
    (HasNoText(), "HasNoText"),
]


def test_whatever_a_tool_raises_is_the_answer_to_its_call_whoever_wrote_the_tool(workspace: Path) -> None:
    wrong = {}
    for error, words in RAISED:
        foreign = toolbox(workspace, foreign=[MadeTool("look_up", error=error)])
        ours = toolbox(workspace, spawn=raising(error))
        for tools, name in ((foreign, "look_up"), (ours, "spawn")):
            result = called(tools, name, task="x")
            if not result.is_error or f"Error: {name} failed: {words}" not in result.output or len(result.output) > 400:
                wrong[name, words] = result
    assert wrong == {}


def test_a_fault_that_no_other_call_avoids_and_a_signal_reach_the_runs_boundary(workspace: Path) -> None:
    kept = [
        FleetFault("no sandbox starts", code="E-SANDBOX"),
        OrderError("the model is unknown", code="E-MODEL-404"),
        ModelCallFailed("no answer", error_class="timeout"),
        Preempted(),
    ]
    for error in kept:
        with pytest.raises(type(error)):
            called(toolbox(workspace, spawn=raising(error)), "spawn", task="x")


def raising(error: Exception) -> SpawnChild:
    def spawn(*_: object) -> ToolResult:
        raise error

    return spawn


def test_shell_runs_in_the_workspace_and_shows_the_output_and_then_the_return_code(call: Call, workspace: Path) -> None:
    (workspace / "here").write_text("out\n")
    result = call("shell", command="cat here; echo err >&2; exit 3")
    assert result.output == "out\nerr\n(return code 3)"
    assert (result.return_code, result.is_error) == (3, False)
    assert call("shell", command="true").output == "(return code 0)\n(the command succeeded and printed nothing)"
    logs = [call("shell", command=f"seq {first} 5000").log for first in (1, 2)]
    assert [log.read_text()[:2] for log in logs if log] == ["1\n", "2\n"]
    (workspace / "sub").mkdir()
    (workspace / "sub-logs").write_text("in the place of the logs")
    without_log = called(toolbox(workspace / "sub"), "shell", command="seq 1 5000")
    assert (without_log.return_code, without_log.log, "its log was not kept" in without_log.output) == (0, None, True)
    nul = call("shell", command="echo a\0b")
    assert nul.output == "Error: a command line cannot contain NUL bytes; write them with printf '\\0'"


def test_a_command_that_is_ended_or_broken_off_answers_with_its_output(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_when_begun() -> None:
        if (workspace / "begun").exists():
            raise Preempted

    with pytest.raises(Preempted) as stopped:
        called(toolbox(workspace, check=stop_when_begun), "shell", command="echo begun; touch begun; sleep 60")
    (answer,) = stopped.value.messages
    assert (answer.role, answer.tool_call_id, answer.content) == ("tool", "call1", "begun\n")

    time_is_up_when(monkeypatch, (workspace / "late").exists)
    result = call("shell", command="echo begun; touch late; sleep 1000", timeout=99.5)
    assert "(ended after 99.5 s" in result.output
    assert (result.return_code, result.is_error) == (None, True)


def test_the_magic_line_submits_what_comes_after_it(call: Call, workspace: Path) -> None:
    for name, arguments, response in (
        ("submit", {"summary": "All done."}, "All done."),
        ("shell", {"command": f"echo; echo {SUBMIT_LINE}; echo first; echo second"}, "first\nsecond"),
    ):
        with pytest.raises(Submitted) as done:
            call(name, **arguments)
        assert done.value.outcome is not None
        assert (done.value.outcome.exit_status, done.value.outcome.response) == (ExitStatus.SUBMITTED, response)
    # It counts only first, after success, and in the command's own text.
    (workspace / "submit.txt").write_text(f"{SUBMIT_LINE}\nfrom a file\n")
    line = f"echo {SUBMIT_LINE}"
    for command in ("cat submit.txt", f"echo before; {line}", f"{line}; exit 1", f"{line} almost"):
        assert SUBMIT_LINE in call("shell", command=command).output, command
