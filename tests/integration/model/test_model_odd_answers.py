"""Answers that no model should give: each is told to the model so that it can mend it, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox
from drone.model.assembly import KEPT, LONGEST
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import assert_valid, messages_of, problems
from shared.work_order import Limits
from tests.support.endpoints import Endpoint, Said, call, call_answer, chunk, streamed, text_answer
from tests.support.runs import Bench, small_repository
from tests.support.scripted import Called

pytestmark = pytest.mark.usefixtures("warm_model")


class Answered:
    """The loop after one odd answer: what the model was told of it, and how the run went on."""

    def __init__(self, *odd: Said, limits: Limits | None = None) -> None:
        with Endpoint(*odd, text_answer("Done.")) as endpoint:
            called = Called(f"{endpoint.url}/v1", limits=limits or Limits(base_delay=0))
            self.toolbox = EchoToolbox()
            self.agent = Agent(
                called.model, self.toolbox, called.recorder, called.controls, called.limits, called.clock
            )
            self.outcome: Outcome = self.agent.run("Rules.", (), "Go.")
            called.model.close()
        assert_valid(self.agent.transcript)
        self.recorded, self.shown = called.recorder.bodies, called.recorder.deltas
        self.bodies = endpoint.bodies

    @property
    def told(self) -> list[str]:
        """The last messages of the second question: what the model read about its odd answer."""
        return [message["content"] for message in self.bodies[1]["messages"] if message["role"] in {"tool", "user"}][1:]


def nested(depth: int) -> str:
    return '{"text": ' + "[" * depth + "]" * depth + "}"


def test_the_model_is_told_what_was_wrong_and_goes_on() -> None:
    cases: list[tuple[Said, str]] = [
        (call_answer(call("", {"text": "x"})), "names no tool"),
        (call_answer(call(None, {"text": "x"})), "names no tool"),
        (call_answer(call("shell", {})), "there is no tool named 'shell'"),
        (call_answer(call("echo", '"x"')), "must be one JSON object"),
        (call_answer(call("echo", '["x"]')), "must be one JSON object"),
        (call_answer(call("echo", "{'text': 'x'}")), "are not valid JSON"),
        (call_answer(call("echo", nested(1_000))), "nested too deeply"),
        (call_answer(call("echo", nested(100_000))), "nested too deeply"),
        (call_answer(call("echo", nested(300))), "nested too deeply"),
        (call_answer(call("echo", '{"text": ' + '{"a":' * 1_000)), "Send the call again"),
        (call_answer(call("echo", '{"text": "x'), finish="length"), "the answer reached the length limit"),
        (text_answer('{"name": "echo", "arguments": {"text": "x"}}'), "call to echo written as text"),
        (text_answer("<tool_call>echo</tool_call>"), "call to echo written as text"),
        (text_answer(""), "neither text nor a tool call"),
        (text_answer(" \n"), "neither text nor a tool call"),
        (streamed(chunk(reasoning_content="Hm."), chunk("stop")), "neither text nor a tool call"),
        (text_answer("Half of an ans", finish="length"), "reached the length limit"),
        (text_answer("", finish="length"), "reached the length limit"),
    ]
    for odd, told in cases:
        answered = Answered(odd)
        assert told in answered.told[-1], odd
        assert (answered.outcome.exit_status, answered.outcome.response) == (ExitStatus.STOPPED, "Done."), odd
        assert answered.toolbox.ran == [], odd
        assert problems(answered.bodies[1]["messages"]) == [], odd


def test_calls_that_cannot_be_told_apart_are_both_run_and_both_answered() -> None:
    cases: list[list[dict[str, Any]]] = [
        [call("echo", {"text": "one"}, "a", 0), call("echo", {"text": "two"}, "a", 1)],
        [call("echo", {"text": "one"}, None, 0), call("echo", {"text": "two"}, None, 1)],
        [call("echo", {"text": "one"}, "", 0), call("echo", {"text": "two"}, "", 1)],
        [call("echo", {"text": "one"}, "a", 0), call("echo", {"text": "two"}, "b", 0)],
    ]
    for calls in cases:
        answered = Answered(call_answer(*calls))
        assert [json.loads(each.arguments)["text"] for each in answered.toolbox.ran] == ["one", "two"], calls
        sent = answered.bodies[1]["messages"][2]["tool_calls"]
        assert len({each["id"] for each in sent}) == 2, calls
        assert answered.told == ["one", "two"], calls


def test_arguments_of_ten_megabytes_are_cut_off_and_their_beginning_is_kept() -> None:
    piece = {"index": 0, "function": {"arguments": "x" * 100_000}}
    head = chunk(tool_calls=[call("echo", '{"text": "')])
    answered = Answered(streamed(head, *[chunk(tool_calls=[piece])] * 100, chunk("tool_calls")))
    assert "the answer reached the length limit" in answered.told[-1]
    kept = answered.agent.transcript[2].tool_calls[0].arguments
    assert (len(kept), kept[:12]) == (KEPT, '{"text": "xx')
    assert len(json.dumps(answered.bodies[1])) < 20_000


def test_an_endpoint_that_never_stops_talking_is_cut_off() -> None:
    answered = Answered(streamed(*(chunk(content=f"{n} " + "word " * 2_000) for n in range(400)), done=False))
    assert "reached the length limit" in answered.told[-1]
    assert sum(len(text) for _, text in answered.shown) < 2 * LONGEST
    assert len(json.dumps(answered.bodies[1])) < 50_000


def test_an_order_outlives_odd_answers_with_its_journal_whole(tmp_path: Path) -> None:
    odd = [
        call_answer(call("shell", nested(100_000))),
        call_answer(call("shell", '{"command": "' + "x" * 10_000_000)),
        call_answer(call(None, {}), call("shell", "[]", "call_1", 1)),
        call_answer(call("shell \ud83d", '{"command": "\ud83d"}')),
        call_answer(call("shell", '{"command": "echo \\ud83d"}')),
        streamed(chunk(reasoning_content="Hm. \ud83d"), chunk("stop")),
    ]
    bench = Bench(tmp_path / "drone", small_repository(tmp_path / "repository.git"))
    bench.order = bench.order.model_copy(
        update={"limits": bench.order.limits.model_copy(update={"max_format_errors": 100})}
    )
    with Endpoint(*odd, text_answer("Done.")) as endpoint:
        ended = bench.run(f"{endpoint.url}/v1")
    assert (ended.exit_status, ended.response) == ("stopped", "Done.")
    assert problems(messages_of(event.body for event in bench.events)) == []


def test_answers_that_never_can_be_acted_on_end_the_run_with_all_of_them_recorded() -> None:
    answered = Answered(*[text_answer("")] * 3)
    assert answered.outcome.exit_status is ExitStatus.FORMAT_ERRORS
    assert sum(body.kind == "assistant" for body in answered.recorded) == 3
