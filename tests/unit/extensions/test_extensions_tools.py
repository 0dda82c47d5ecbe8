"""Tools that extensions bring, as the model calls them."""

from __future__ import annotations

import sys
import textwrap
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from drone.agent.hooks.calling import CallFailed
from drone.agent.in_memory import QuietControls
from drone.extensions.controls import HeldControls
from drone.extensions.foreign_calls import ForeignCalls
from shared.errors import Halted, Interrupted, LimitsExceeded, Preempted
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from tests.support import wait_until
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


def test_the_model_is_told_of_the_tool_and_gets_its_text_or_what_is_wrong(tmp_path: Path) -> None:
    text, loop = told(tmp_path, "return str(arguments['a'] + arguments.get('b', 0))", {"a": 1, "b": 2})
    assert (text, loop.reports) == ("3", [])
    assert [tool.name for tool in loop.agent.tools] == ["echo", "submit", "add"]
    assert loop.extensions.tools[0].read_only
    text, loop = told(tmp_path, "return ToolResult('no sum', is_error=True, return_code=2)", {"a": 1})
    (step,) = [body for body in loop.recorder.bodies if body.kind == "tool_result"]
    assert (step.output, step.return_code, step.is_error) == ("no sum", 2, True)
    text, loop = told(tmp_path, "raise ValueError('boom')", {"a": 1})
    assert text == "Error: add: ValueError: boom"
    assert loop.reports == ["The tool add of the extension extensions/sums.py of the drone failed: ValueError: boom."]
    for body in ("return None", "return ToolResult(3)"):
        text, loop = told(tmp_path, body, {"a": 1})
        assert ("not a string or a ToolResult" in text, len(loop.reports)) == (True, 1), body
    text, _ = told(tmp_path, "return 'a' * 50_000 + '\\ud800\\0'", {"a": 1})
    assert (len(text) < 10_100, "characters elided" in text, text[-2:]) == (True, True, "?␀")


def test_arguments_that_do_not_fit_are_the_models_to_mend(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ({}, "the arguments: 'a' is a required property"),
        ({"a": 1, "b": 10}, "b: 10 is greater than the maximum of 9"),
        ({"a": 1, "c": 1}, "'c' was unexpected"),
    ]
    for arguments, complaint in cases:
        text, loop = told(tmp_path, "return 'never'", arguments)
        assert (text.startswith("Error: add: "), complaint in text, loop.reports) == (True, True, []), arguments


def test_neither_a_cancel_nor_the_runs_time_limit_waits_for_a_tool(tmp_path: Path) -> None:
    write(tmp_path, "extensions/sums.py", ADD.format(body="wait()"))
    loop = ExtendedLoop([call({"a": 1})], home=tmp_path)
    loop.extensions.hooks.on("tool_call", lambda *_: setattr(loop.controls, "signal", Preempted()))
    with pytest.raises(Preempted):
        loop.run()
    assert loop.told[1][1].startswith("This call was interrupted")
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


SAID = Interrupted(Message(role="user", content="Wait."))


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Something to wait for that comes when the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def calls() -> Iterator[ForeignCalls]:
    made = ForeignCalls(60)
    yield made
    made.close()


def test_code_runs_in_a_thread_that_is_not_ours_and_whatever_it_raises_is_a_failed_call(calls: ForeignCalls) -> None:
    names = {calls(threading.get_ident) for _ in range(3)}
    assert (len(names), threading.get_ident() in names) == (1, False)
    cases: list[BaseException] = [ValueError("boom"), SystemExit(3), KeyboardInterrupt(), Preempted()]
    for error in cases:
        with pytest.raises(CallFailed, match=type(error).__name__) as failed:
            calls(partial(raising(error), None))
        assert failed.value.why == "raised", error
        assert "scripted.py" in failed.value.detail, error
        assert calls(lambda: "still there") == "still there", error


def test_a_call_that_takes_too_long_is_given_up_even_endless_python_code_and_the_next_one_goes_on() -> None:
    calls, ident = ForeignCalls(1), []

    def endless() -> None:
        ident.append(threading.get_ident())
        while True:
            pass

    with pytest.raises(CallFailed, match="took longer than 1 s"):
        calls(endless)
    # The next one has as long, and its thread may begin late.
    assert calls(lambda: "next") == "next"
    assert wait_until(lambda: ident[0] not in sys._current_frames())
    calls.close()


def test_when_the_run_is_to_end_calls_are_given_up_and_what_people_said_is_not_lost(never: threading.Event) -> None:
    controls = QuietControls()
    held = HeldControls(controls)
    controls.signal = SAID
    held.stop_waiting()
    controls.signal = Preempted()
    with pytest.raises(CallFailed) as failed:
        ForeignCalls(60, held.stop_waiting)(never.wait)
    assert failed.value.why == "run_ends"
    with pytest.raises(Preempted):
        held.check()
    with pytest.raises(Interrupted):
        held.check()
    # It comes before what an extension said, too.
    held.end("no more")
    controls.signal = Preempted()
    with pytest.raises(Preempted):
        held.check()
    with pytest.raises(Halted):
        held.check()
    controls.to_steer, controls.to_follow_up = ["left"], ["later"]
    assert (held.pending(), held.pending()) == (True, True)
    controls.to_steer.append("right")
    steered, followed = [each.text for each in held.steering()], [each.text for each in held.follow_ups()]
    assert (steered, followed, held.pending()) == (["left", "right"], ["later"], False)
