"""Every protocol over real HTTP: an answer arrives as it was sent, and goes back as its provider wants it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drone.model.litellm_import import litellm
from shared.messages import Message
from shared.outcome import ExitStatus
from tests.support.endpoints import Endpoint
from tests.support.protocols import PROTOCOLS
from tests.support.protocols.played import Played
from tests.support.protocols.spoken import Answer, Counted, Spoken, SpokenCall, of_kind
from tests.support.scripted import Called

pytestmark = pytest.mark.usefixtures("warm_model")

TWO = (SpokenCall("a1b2c3d4e"), SpokenCall("f1b2c3d4e", arguments={"text": "y"}))
FULL = Answer("Let me look.", "Where is it?", "c2lnbmVk", TWO)


def _asked(protocol: Spoken, answer: Answer) -> tuple[Called, object]:
    with Endpoint(protocol.answer(answer)) as endpoint:
        called = Called("", protocol.provider(endpoint.url))
        given = called.ask()
        called.model.close()
    return called, given


def test_text_thinking_and_parallel_calls_arrive_as_they_were_sent() -> None:
    for protocol in PROTOCOLS:
        called, answer = _asked(protocol, FULL)
        message: Message = answer.message  # type: ignore[attr-defined]
        assert message.content == "Let me look.", protocol
        assert message.thinking == ("Where is it?" if protocol.thinks else ""), protocol
        assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == [
            ("echo", {"text": "x"}),
            ("echo", {"text": "y"}),
        ], protocol
        assert not protocol.own_ids or [call.id for call in message.tool_calls] == ["a1b2c3d4e", "f1b2c3d4e"], protocol
        assert "".join(text for kind, text in called.recorder.deltas if kind == "text") == "Let me look.", protocol


def test_tokens_and_cost_are_those_that_the_provider_counted() -> None:
    for protocol in PROTOCOLS:
        read, written = 400 * protocol.caches, 100 * protocol.writes
        counted = Counted(1000, 50, 20 * protocol.counts_thought, read, written)
        _, answer = _asked(protocol, Answer("Yes.", usage=counted))
        usage = answer.usage  # type: ignore[attr-defined]
        assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (1000, read, 50), protocol
        assert usage.thinking_tokens == 20 * protocol.counts_thought, protocol
        assert usage.cost_usd == _cost(protocol, read, written), protocol


def _cost(protocol: Spoken, read: int, written: int) -> Any:
    """By the list; a model of the user's own has no known price, and is free at Ollama."""
    prices = litellm().model_cost
    name = protocol.model.partition("/")[2]
    rates = prices.get(protocol.priced_as or protocol.model) or prices.get(name, {})
    if not rates:
        return 0 if protocol.name == "ollama" else None
    asked = rates["input_cost_per_token"]
    cost = (1000 - read - written) * asked + 50 * rates["output_cost_per_token"]
    cost += read * rates["cache_read_input_token_cost"]
    return pytest.approx(cost + written * rates.get("cache_creation_input_token_cost", asked))


def test_the_next_question_gives_back_thinking_then_calls_then_a_result_for_each() -> None:
    for protocol in PROTOCOLS:
        played = Played(protocol, protocol.answer(FULL))
        parts = played.parts[1]
        kinds = [part.kind for part in parts]
        thought = ["thought"] if protocol.thinks and protocol.native else []
        assert kinds == [*thought, "text", "call", "call", "result", "result"], protocol
        said = (
            "Let me look."
            if protocol.native or not protocol.thinks
            else "<thinking>Where is it?</thinking>\nLet me look."
        )
        assert of_kind(parts, "text")[0].text == said, protocol
        assert [part.text for part in of_kind(parts, "thought")] == ["Where is it?"] * len(thought), protocol
        assert [(part.name, part.text) for part in of_kind(parts, "call")] == [("echo", "x"), ("echo", "y")], protocol
        assert [part.text for part in of_kind(parts, "result")] == ["x", "y"], protocol
        ids = [call.id for call in played.toolbox.ran]
        assert [part.id for part in of_kind(parts, "result")] == ids, protocol
        assert not protocol.own_ids or [part.id for part in of_kind(parts, "call")] == ids, protocol


def test_a_run_of_many_steps_keeps_what_was_sent_to_the_byte() -> None:
    for protocol in PROTOCOLS:
        steps = [Answer("Look.", f"Thought {n}.", "c2ln", (SpokenCall(f"a1b2c3d4{n}"),)) for n in range(4)]
        played = Played(protocol, *map(protocol.answer, steps))
        assert played.outcome.exit_status is ExitStatus.STOPPED, protocol
        assert len({json.dumps(protocol.prefix(body)) for body in played.bodies}) == 1, protocol
        for earlier, later in zip(played.parts, played.parts[1:], strict=False):
            assert later[: len(earlier)] == earlier
            assert len(later) > len(earlier)


def test_two_calls_with_one_id_are_both_run_and_both_answered() -> None:
    for protocol in PROTOCOLS:
        same = (SpokenCall("a1b2c3d4e"), SpokenCall("a1b2c3d4e", arguments={"text": "y"}))
        parts = Played(protocol, protocol.answer(Answer(calls=same))).parts[1]
        assert [part.text for part in of_kind(parts, "call")] == ["x", "y"], protocol
        results = of_kind(parts, "result")
        assert [part.text for part in results] == ["x", "y"], protocol
        assert len({part.id for part in results}) == 2, protocol
        assert not protocol.own_ids or [part.id for part in of_kind(parts, "call")] == [part.id for part in results], (
            protocol
        )


def test_arguments_that_are_no_json_are_told_to_the_model_and_spoil_nothing() -> None:
    for protocol in [each for each in PROTOCOLS if each.json_calls]:
        broken = Answer(calls=(SpokenCall("a1b2c3d4e", text='{"text": "x'),))
        played = Played(protocol, protocol.answer(broken))
        assert played.toolbox.ran == [], protocol
        assert "are not valid JSON" in of_kind(played.parts[1], "result")[0].text, protocol
        assert (played.outcome.exit_status, played.outcome.response) == (ExitStatus.STOPPED, "Done."), protocol


def test_tokens_that_were_never_reported_are_counted_and_marked_as_such() -> None:
    for protocol in PROTOCOLS:
        _, answer = _asked(protocol, Answer("Yes.", usage=None))
        assert answer.usage.input_tokens > 0  # type: ignore[attr-defined], protocol
        assert answer.usage_reported is protocol.estimated  # type: ignore[attr-defined], protocol
