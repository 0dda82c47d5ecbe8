"""Answers that no model should give: each is told to the model so that it can mend it, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drone.model.answer_assembly import KEPT, LONGEST
from shared.outcome import ExitStatus
from shared.transcripts import messages_of
from shared.work_order import OrderProvider
from tests.support.endpoints import Endpoint, Said, call, call_answer, chunk, streamed, text_answer
from tests.support.protocols.played import Ran
from tests.support.runs import Bench, small_repository
from tests.support.transcripts import problems

pytestmark = pytest.mark.usefixtures("warm_model")


def provider(url: str) -> OrderProvider:
    return OrderProvider(name="p", model="openai/x", api_base=f"{url}/v1")


def after(*odd: Said) -> tuple[Ran, list[str]]:
    """A run after one odd answer, and what the second question says about it."""
    ran = Ran(provider, *odd, text_answer("Done."))
    return ran, [message["content"] for message in ran.bodies[1]["messages"] if message["role"] in {"tool", "user"}][1:]


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
        (call_answer(call("echo", nested(300))), "nested too deeply"),
        (call_answer(call("echo", nested(100_000))), "nested too deeply"),
        (call_answer(call("echo", '{"text": ' + '{"a":' * 1_000)), "Send the call again"),
        (call_answer(call("echo", '{"text": "x'), finish="length"), "the answer reached the length limit"),
        (text_answer('{"name": "echo", "arguments": {"text": "x"}}'), "call to echo written as text"),
        (text_answer("<tool_call>echo</tool_call>"), "call to echo written as text"),
        (
            text_answer('<|channel|>commentary to=functions.echo <|message|>{"text": "x"}<|call|>'),
            "to echo written as text",
        ),
        (text_answer(" \n"), "neither text nor a tool call"),
        (streamed(chunk(reasoning_content="Hm."), chunk("stop")), "neither text nor a tool call"),
        (text_answer("<think>I should look first.</think>"), "neither text nor a tool call"),
        (text_answer("<think>I should look first."), "neither text nor a tool call"),
        (text_answer("I should look first.\n</think>\n"), "neither text nor a tool call"),
        (text_answer("Half of an ans", finish="length"), "reached the length limit"),
        (text_answer("", finish="length"), "reached the length limit"),
    ]
    for odd, expected in cases:
        ran, told = after(odd)
        assert expected in told[-1], odd
        assert (ran.outcome.exit_status, ran.outcome.response) == (ExitStatus.STOPPED, "Done."), odd
        assert ran.toolbox.ran == [], odd
        assert problems(ran.bodies[1]["messages"]) == [], odd


def test_an_answer_that_shows_a_call_ends_a_run_and_a_call_that_stays_text_never_does_as_a_success() -> None:
    worked, quoted = call_answer(call("echo", {"text": "x"})), "It looks like `<tool_call>echo</tool_call>`."
    shown = 'This is the call:\n\n```json\n{"name": "echo", "arguments": {"text": "x"}}\n```'
    cases: list[tuple[list[str], ExitStatus, int]] = [
        ([quoted], ExitStatus.STOPPED, 2),
        ([shown], ExitStatus.STOPPED, 3),
        (['<tool_call>{"name": "echo", "arguments": {}}</tool_call>'], ExitStatus.FORMAT_ERRORS, 4),
        ([shown, quoted], ExitStatus.STOPPED, 3),
    ]
    for said, status, asked in cases:
        ran = Ran(provider, worked, *map(text_answer, said))  # the last answer repeats
        assert (ran.outcome.exit_status, len(ran.bodies)) == (status, asked), said
    assert Ran(provider, text_answer(shown)).outcome.exit_status is ExitStatus.FORMAT_ERRORS, "no call ever reached us"


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


def test_a_raw_line_break_in_arguments_is_part_of_the_argument() -> None:
    ran, told = after(call_answer(call("echo", '{"text": "one\ntwo"}')))
    assert (told[-1], json.loads(ran.toolbox.ran[0].arguments)) == ("one\ntwo", {"text": "one\ntwo"})


def test_an_order_whose_model_repeats_a_wrong_call_is_ended_with_what_it_repeats(tmp_path: Path) -> None:
    for number, odd in enumerate([call("shell", {"cmd": "ls"}), call("str_replace_editor", {"path": "README"})]):
        bench = Bench(tmp_path / f"drone{number}", small_repository(tmp_path / f"{number}.git"))
        with Endpoint(call_answer(odd)) as endpoint:
            ended = bench.run(f"{endpoint.url}/v1")
        assert (ended.exit_status, len(endpoint.asked)) == ("halted", 10), odd
        assert odd["function"]["name"] in ended.reason, odd
        assert ended.reason.count("Error: ") == 1, odd


def test_arguments_of_ten_megabytes_are_cut_off_and_their_beginning_is_kept() -> None:
    piece = {"index": 0, "function": {"arguments": "x" * 100_000}}
    head = chunk(tool_calls=[call("echo", '{"text": "')])
    ran, told = after(streamed(head, *[chunk(tool_calls=[piece])] * 100, chunk("tool_calls")))
    assert "the answer reached the length limit" in told[-1]
    kept = ran.agent.transcript[2].tool_calls[0].arguments
    assert (len(kept), kept[:12]) == (KEPT, '{"text": "xx')
    assert len(json.dumps(ran.bodies[1])) < 20_000


def test_an_endpoint_that_never_stops_talking_is_cut_off() -> None:
    ran, told = after(streamed(*(chunk(content=f"{n} " + "word " * 2_000) for n in range(400)), done=False))
    assert "reached the length limit" in told[-1]
    assert sum(len(text) for _, text in ran.recorder.deltas) < 2 * LONGEST
    assert len(json.dumps(ran.bodies[1])) < 50_000


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
    bench.limit(max_format_errors=100)
    with Endpoint(*odd, text_answer("Done.")) as endpoint:
        ended = bench.run(f"{endpoint.url}/v1")
    assert (ended.exit_status, ended.response) == ("stopped", "Done.")
    assert problems(messages_of(event.body for event in bench.events)) == []
