"""Tools that extensions bring, as the model calls them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from drone.extensions.tools import tool_spec
from shared.errors import LimitsExceeded, Preempted
from shared.outcome import ExitStatus, Outcome
from tests.support.extensions import WAITS, ExtendedLoop, write
from tests.support.scripted import raising, says

ADD = (
    textwrap.dedent("""
    from drone.extensions import ToolResult

    SCHEMA = {{
        "type": "object",
        "properties": {{"a": {{"type": "integer"}}, "b": {{"type": "integer", "maximum": 9}}}},
        "required": ["a"],
        "additionalProperties": False,
    }}

    def act(arguments):
        {body}

    def extend(api):
        api.tool("add", "Add two numbers.", SCHEMA, act, read_only=True)
""")
    + WAITS
)


def call(arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": "add", "arguments": arguments}]}


def told(home: Path, body: str, arguments: Any, **bounds: Any) -> tuple[str, ExtendedLoop]:
    """What the model is told of one call, and the loop."""
    write(home, "extensions/sums.py", ADD.format(body=body))
    loop = ExtendedLoop([call(arguments), says("Done.")], home=home, bounds=bounds)
    assert loop.run().exit_status is ExitStatus.STOPPED
    return loop.told[1][1], loop


def test_the_model_is_told_of_the_tool_and_gets_its_text(tmp_path: Path) -> None:
    text, loop = told(tmp_path, "return str(arguments['a'] + arguments.get('b', 0))", {"a": 1, "b": 2})
    assert (text, loop.reports) == ("3", [])
    assert [tool.name for tool in loop.agent.tools] == ["echo", "submit", "add"]
    assert loop.extensions.tools[0].read_only


def test_arguments_that_do_not_fit_are_the_models_to_mend(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ({}, "the arguments: 'a' is a required property"),
        ({"a": "1"}, "a: '1' is not of type 'integer'"),
        ({"a": 1, "b": 10}, "b: 10 is greater than the maximum of 9"),
        ({"a": 1, "c": 1}, "'c' was unexpected"),
    ]
    for arguments, complaint in cases:
        text, loop = told(tmp_path, "return 'never'", arguments)
        assert text.startswith("Error: add: "), arguments
        assert complaint in text, arguments
        assert loop.reports == [], arguments


def test_a_tool_that_raises_is_an_error_for_the_model_and_reported_for_people(tmp_path: Path) -> None:
    text, loop = told(tmp_path, "raise ValueError('boom')", {"a": 1})
    assert text == "Error: add: ValueError: boom"
    assert loop.reports == ["The tool add of the extension extensions/sums.py of the drone failed: ValueError: boom."]


def test_a_result_of_the_wrong_type_is_an_error(tmp_path: Path) -> None:
    for body in ("return 3", "return None", "return ToolResult(3)"):
        text, loop = told(tmp_path, body, {"a": 1})
        assert "not a string or a ToolResult" in text, body
        assert len(loop.reports) == 1, body


def test_a_long_result_is_shown_with_its_head_and_tail(tmp_path: Path) -> None:
    text, _ = told(tmp_path, "return 'a' * 50_000 + '\\ud800\\0'", {"a": 1})
    assert len(text) < 10_100
    assert "characters elided" in text
    assert text.endswith("?␀")


def test_a_result_may_say_that_it_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "extensions/sums.py", ADD.format(body="return ToolResult('no sum', is_error=True, return_code=2)"))
    loop = ExtendedLoop([call({"a": 1}), says("Done.")], home=tmp_path)
    loop.run()
    (step,) = [body for body in loop.recorder.bodies if body.kind == "tool_result"]
    assert (step.output, step.return_code, step.is_error) == ("no sum", 2, True)


def test_a_cancel_does_not_wait_for_a_tool(tmp_path: Path) -> None:
    write(tmp_path, "extensions/sums.py", ADD.format(body="wait()"))
    loop = ExtendedLoop([call({"a": 1})], home=tmp_path)
    write(tmp_path, "extensions/cancels.py", "")
    loop.extensions.hooks.on("tool_call", lambda *_: setattr(loop.controls, "signal", Preempted()))
    with pytest.raises(Preempted):
        loop.run()
    assert loop.told[1][1].startswith("This call was interrupted")


def test_the_runs_time_limit_does_not_wait_for_a_tool(tmp_path: Path) -> None:
    write(tmp_path, "extensions/sums.py", ADD.format(body="wait()"))
    over = LimitsExceeded(outcome=Outcome(ExitStatus.TIME_LIMIT, "The time is over."))
    loop = ExtendedLoop([call({"a": 1})], home=tmp_path, bounds={"limits": lambda: raising(over)(None)})
    assert loop.run().exit_status is ExitStatus.TIME_LIMIT


def test_of_two_tools_with_one_name_the_first_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "extensions/a.py", ADD.format(body="return 'first'"))
    write(tmp_path, "extensions/b.py", ADD.format(body="return 'second'"))
    loop = ExtendedLoop([call({"a": 1}), says("Done.")], home=tmp_path)
    loop.run()
    assert loop.told[1][1] == "first"
    assert "The tool add of the extension extensions/b.py of the drone is ignored" in loop.reports[0]


def test_a_schema_that_no_endpoint_would_take_is_refused() -> None:
    cases: list[Any] = [{"type": "array"}, [], {"type": "object", "properties": {"a": {"type": "whole"}}}]
    for schema in cases:
        with pytest.raises(ValueError, match="JSON schema"):
            tool_spec("add", "", schema)
