"""Every protocol over real HTTP: an answer arrives as it was sent, and goes back as its provider wants it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from drone.model.litellm_import import litellm
from shared.messages import Message
from tests.support.protocols import PROTOCOLS
from tests.support.protocols.played import Played, calling
from tests.support.protocols.spoken import Answer, Counted, Spoken, SpokenCall, of_kind

pytestmark = pytest.mark.usefixtures("warm_model")

TWO = (SpokenCall("a1b2c3d4e"), SpokenCall("f1b2c3d4e", arguments={"text": "y"}))
FULL = Answer("Let me look.", "Where is it?", "c2lnbmVk", TWO)


def test_text_thinking_and_parallel_calls_arrive_as_they_were_sent() -> None:
    for protocol in PROTOCOLS:
        with calling(protocol, protocol.answer(FULL)) as (called, _):
            message: Message = called.ask().message
        assert message.content == "Let me look.", protocol
        assert message.thinking == ("Where is it?" if protocol.thinks else ""), protocol
        calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
        assert calls == [("echo", {"text": "x"}), ("echo", {"text": "y"})], protocol
        assert not protocol.own_ids or [call.id for call in message.tool_calls] == ["a1b2c3d4e", "f1b2c3d4e"], protocol
        assert "".join(text for kind, text in called.recorder.deltas if kind == "text") == "Let me look.", protocol


def test_tokens_and_cost_are_those_that_the_provider_counted() -> None:
    """Those that were never reported are counted and marked as such."""
    for protocol in PROTOCOLS:
        read, written = 400 * protocol.caches, 100 * protocol.writes
        counted = Counted(1000, 50, 20 * protocol.counts_thought, read, written)
        reported, silent = (protocol.answer(Answer("Yes.", usage=usage)) for usage in (counted, None))
        with calling(protocol, reported, silent) as (called, _):
            usage, unreported = called.ask().usage, called.ask()
        assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (1000, read, 50), protocol
        assert usage.thinking_tokens == 20 * protocol.counts_thought, protocol
        assert usage.cost_usd == _cost(protocol, read, written), protocol
        assert unreported.usage.input_tokens > 0, protocol
        assert unreported.usage_reported is protocol.estimated, protocol


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
        thought = ["thought"] if protocol.thinks and protocol.native else []
        assert [part.kind for part in parts] == [*thought, "text", "call", "call", "result", "result"], protocol
        as_text = "<thinking>Where is it?</thinking>\n" if protocol.thinks and not protocol.native else ""
        assert of_kind(parts, "text")[0].text == f"{as_text}Let me look.", protocol
        assert [part.text for part in of_kind(parts, "thought")] == ["Where is it?"] * len(thought), protocol
        assert [(part.name, part.text) for part in of_kind(parts, "call")] == [("echo", "x"), ("echo", "y")], protocol
        assert [part.text for part in of_kind(parts, "result")] == ["x", "y"], protocol
        ids = [call.id for call in played.toolbox.ran]
        assert [part.id for part in of_kind(parts, "result")] == ids, protocol
        assert not protocol.own_ids or [part.id for part in of_kind(parts, "call")] == ids, protocol
        # Two calls with one id are both run and both answered.
        parts = Played(protocol, protocol.answer(Answer(calls=(TWO[0], replace(TWO[1], id=TWO[0].id))))).parts[1]
        calls, results = of_kind(parts, "call"), of_kind(parts, "result")
        assert [part.text for part in calls] == [part.text for part in results] == ["x", "y"], protocol
        assert len({part.id for part in results}) == 2, protocol
        assert not protocol.own_ids or [part.id for part in calls] == [part.id for part in results], protocol
