"""Answers that no model should give: each is told to the model so that it can mend it, and nothing is lost."""

from __future__ import annotations

import json

import pytest

from drone.model.answer_assembly import KEPT, LONGEST
from shared.outcome import ExitStatus
from shared.work_order import OrderProvider
from tests.support.endpoints import Said, call, call_answer, chunk, streamed, text_answer
from tests.support.protocols.played import Ran
from tests.support.transcripts import problems

pytestmark = pytest.mark.usefixtures("warm_model")


def provider(url: str) -> OrderProvider:
    return OrderProvider(name="p", model="openai/x", api_base=f"{url}/v1")


def after(*odd: Said) -> tuple[Ran, list[str]]:
    """A run after one odd answer, and what the second question says about it; all of it can be stored."""
    ran = Ran(provider, *odd, text_answer("Done."))
    assert (ran.outcome.exit_status, ran.outcome.response) == (ExitStatus.STOPPED, "Done."), odd
    for body in ran.recorder.bodies:
        assert type(body).model_validate_json(body.model_dump_json().encode()) == body
    assert [each for asked in ran.bodies for each in problems(asked["messages"])] == []
    return ran, [message["content"] for message in ran.bodies[1]["messages"] if message["role"] in {"tool", "user"}][1:]


def nested(depth: int) -> str:
    return '{"text": ' + "[" * depth + "]" * depth + "}"


def test_the_model_is_told_what_was_wrong_and_goes_on() -> None:
    """What is wrong with a call is tested in tests/unit/agent/test_loop.py."""
    cases: list[tuple[Said, str]] = [
        (call_answer(call(None, {"text": "x"})), "names no tool"),
        (call_answer(call(None, {}), call("shell", "[]", "call_1", 1)), "there is no tool named 'shell'"),
        (call_answer(call("shell \ud83d", '{"command": "\ud83d"}')), "there is no tool named 'shell"),
        (call_answer(call("echo", nested(100_000))), "nested too deeply"),
        (call_answer(call("echo", '{"text": ' + '{"a":' * 1_000)), "Send the call again"),
        (call_answer(call("echo", '{"text": "x'), finish="length"), "the answer reached the length limit"),
        (text_answer('{"name": "echo", "arguments": {"text": "x"}}'), "call to echo written as text"),
        (text_answer(" \n"), "neither text nor a tool call"),
        (streamed(chunk(reasoning_content="Hm. \ud83d"), chunk("stop")), "neither text nor a tool call"),
        (text_answer("<think>I should look first.</think>"), "neither text nor a tool call"),
        (text_answer("Half of an ans", finish="length"), "reached the length limit"),
        (text_answer("", finish="length"), "reached the length limit"),
    ]
    for odd, expected in cases:
        ran, told = after(odd)
        assert expected in told[-1], odd
        assert ran.toolbox.ran == [], odd
    # A raw line break is part of an argument, and so is half a character, which is marked.
    ran, told = after(call_answer(call("echo", '{"text": "one\ntwo \\ud83d"}')))
    assert (told[-1], json.loads(ran.toolbox.ran[0].arguments)) == ("one\ntwo \ufffd", {"text": "one\ntwo \ufffd"})


def test_an_answer_that_shows_a_call_ends_a_run_and_a_call_that_stays_text_never_does_as_a_success() -> None:
    worked, quoted = call_answer(call("echo", {"text": "x"})), "It looks like `<tool_call>echo</tool_call>`."
    shown = 'This is the call:\n\n```json\n{"name": "echo", "arguments": {"text": "x"}}\n```'
    cases: list[tuple[list[str], ExitStatus, int]] = [
        ([shown], ExitStatus.STOPPED, 3),
        (['<tool_call>{"name": "echo", "arguments": {}}</tool_call>'], ExitStatus.FORMAT_ERRORS, 4),
        ([shown, quoted], ExitStatus.STOPPED, 3),
    ]
    for said, status, asked in cases:
        ran = Ran(provider, worked, *map(text_answer, said))  # the last answer repeats
        assert (ran.outcome.exit_status, len(ran.bodies)) == (status, asked), said
    assert Ran(provider, text_answer(shown)).outcome.exit_status is ExitStatus.FORMAT_ERRORS, "no call ever reached us"


def test_an_answer_that_is_much_too_long_is_cut_off_and_its_beginning_is_kept() -> None:
    piece = {"index": 0, "function": {"arguments": "x" * 100_000}}
    head = chunk(tool_calls=[call("echo", '{"text": "')])
    for endless in (
        streamed(head, *[chunk(tool_calls=[piece])] * 100, chunk("tool_calls")),
        streamed(*(chunk(content=f"{n} " + "word " * 2_000) for n in range(400)), done=False),
    ):
        ran, told = after(endless)
        assert "reached the length limit" in told[-1]
        assert sum(len(text) for _, text in ran.recorder.deltas) < 2 * LONGEST
        assert len(json.dumps(ran.bodies[1])) < 50_000
        kept = ran.agent.transcript[2]
        assert len(kept.tool_calls[0].arguments if kept.tool_calls else kept.content) == KEPT


def test_thoughts_in_tags_are_shown_and_kept_as_thinking_and_the_response_has_only_text() -> None:
    pieces = (chunk(content=piece) for piece in ("<th", "ink>H", "m.</", "think>", "\n\nAll is ", "well.", "</thi"))
    ran = Ran(
        provider,
        call_answer(call("echo", {"text": "x"}), content="<think>One.</think>"),
        streamed(*pieces, chunk("stop")),
    )
    assert [message.thinking for message in ran.agent.transcript if message.role == "assistant"] == ["One.", "Hm."]
    assert ran.outcome.response == "All is well.</thi"
    shown = [(kind, text) for kind, text in ran.recorder.deltas if kind != "tool_call"]
    assert "".join(text for kind, text in shown if kind == "thinking") == "One.Hm."
    assert "".join(text for kind, text in shown if kind == "text").strip() == "All is well.</thi"
    assert ran.bodies[1]["messages"][2]["content"] == "<thinking>One.</thinking>\n"
