"""Every protocol over real HTTP: an answer arrives as it was sent, and goes back as its provider wants it."""

from __future__ import annotations

import json

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
everywhere = pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)

TWO = (SpokenCall("a1b2c3d4e"), SpokenCall("f1b2c3d4e", arguments={"text": "y"}))
FULL = Answer("Let me look.", "Where is it?", "c2lnbmVk", TWO)


def _asked(protocol: Spoken, answer: Answer) -> tuple[Called, object]:
    with Endpoint(protocol.answer(answer)) as endpoint:
        called = Called("", protocol.provider(endpoint.url))
        given = called.ask()
        called.model.close()
    return called, given


@everywhere
def test_text_thinking_and_parallel_calls_arrive_as_they_were_sent(protocol: Spoken) -> None:
    called, answer = _asked(protocol, FULL)
    message: Message = answer.message  # type: ignore[attr-defined]
    assert message.content == "Let me look."
    assert message.thinking == ("Where is it?" if protocol.thinks else "")
    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == [
        ("echo", {"text": "x"}),
        ("echo", {"text": "y"}),
    ]
    assert not protocol.own_ids or [call.id for call in message.tool_calls] == ["a1b2c3d4e", "f1b2c3d4e"]
    assert "".join(text for kind, text in called.recorder.deltas if kind == "text") == "Let me look."


@everywhere
def test_tokens_and_cost_are_those_that_the_provider_counted(protocol: Spoken) -> None:
    read, written = 400 * protocol.caches, 100 * protocol.writes
    _, answer = _asked(protocol, Answer("Yes.", usage=Counted(1000, 50, 20 * protocol.counts_thought, read, written)))
    usage = answer.usage  # type: ignore[attr-defined]
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (1000, read, 50)
    assert usage.thinking_tokens == 20 * protocol.counts_thought
    rates = litellm().model_cost.get(protocol.priced_as or protocol.model) or litellm().model_cost.get(
        protocol.model.partition("/")[2], {}
    )
    if not rates:
        # A model of the user's own: Ollama's are free, and others have no known price.
        assert usage.cost_usd == (0 if protocol.name == "ollama" else None)
        return
    asked = rates["input_cost_per_token"]
    cost = (1000 - read - written) * asked + 50 * rates["output_cost_per_token"]
    cost += read * rates["cache_read_input_token_cost"]
    cost += written * rates.get("cache_creation_input_token_cost", asked)
    assert usage.cost_usd == pytest.approx(cost)


@everywhere
def test_the_next_question_gives_back_thinking_then_calls_then_a_result_for_each(protocol: Spoken) -> None:
    played = Played(protocol, protocol.answer(FULL))
    parts = played.parts[1]
    kinds = [part.kind for part in parts]
    thought = ["thought"] if protocol.thinks and protocol.native else []
    assert kinds == [*thought, "text", "call", "call", "result", "result"]
    said = (
        "Let me look." if protocol.native or not protocol.thinks else "<thinking>Where is it?</thinking>\nLet me look."
    )
    assert of_kind(parts, "text")[0].text == said
    assert [part.text for part in of_kind(parts, "thought")] == ["Where is it?"] * len(thought)
    assert [(part.name, part.text) for part in of_kind(parts, "call")] == [("echo", "x"), ("echo", "y")]
    assert [part.text for part in of_kind(parts, "result")] == ["x", "y"]
    ids = [call.id for call in played.toolbox.ran]
    assert [part.id for part in of_kind(parts, "result")] == ids
    assert not protocol.own_ids or [part.id for part in of_kind(parts, "call")] == ids


@everywhere
def test_a_run_of_many_steps_keeps_what_was_sent_to_the_byte(protocol: Spoken) -> None:
    steps = [Answer("Look.", f"Thought {n}.", "c2ln", (SpokenCall(f"a1b2c3d4{n}"),)) for n in range(4)]
    played = Played(protocol, *map(protocol.answer, steps))
    assert played.outcome.exit_status is ExitStatus.STOPPED
    assert len({json.dumps(protocol.prefix(body)) for body in played.bodies}) == 1
    for earlier, later in zip(played.parts, played.parts[1:], strict=False):
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier)


@everywhere
def test_a_call_without_arguments_is_a_call(protocol: Spoken) -> None:
    _, answer = _asked(protocol, Answer(calls=(SpokenCall("a1b2c3d4e", arguments={}),)))
    assert [call.arguments for call in answer.message.tool_calls] == ["{}"]  # type: ignore[attr-defined]


@everywhere
def test_two_calls_with_one_id_are_both_run_and_both_answered(protocol: Spoken) -> None:
    same = (SpokenCall("a1b2c3d4e"), SpokenCall("a1b2c3d4e", arguments={"text": "y"}))
    parts = Played(protocol, protocol.answer(Answer(calls=same))).parts[1]
    assert [part.text for part in of_kind(parts, "call")] == ["x", "y"]
    results = of_kind(parts, "result")
    assert [part.text for part in results] == ["x", "y"]
    assert len({part.id for part in results}) == 2
    assert not protocol.own_ids or [part.id for part in of_kind(parts, "call")] == [part.id for part in results]


@pytest.mark.parametrize("protocol", [each for each in PROTOCOLS if each.json_calls], ids=str)
def test_arguments_that_are_no_json_are_told_to_the_model_and_spoil_nothing(protocol: Spoken) -> None:
    broken = Answer(calls=(SpokenCall("a1b2c3d4e", text='{"text": "x'),))
    played = Played(protocol, protocol.answer(broken))
    assert played.toolbox.ran == []
    assert "are not valid JSON" in of_kind(played.parts[1], "result")[0].text
    assert (played.outcome.exit_status, played.outcome.response) == (ExitStatus.STOPPED, "Done.")


@everywhere
def test_tokens_that_were_never_reported_are_counted_and_marked_as_such(protocol: Spoken) -> None:
    _, answer = _asked(protocol, Answer("Yes.", usage=None))
    assert answer.usage.input_tokens > 0  # type: ignore[attr-defined]
    assert answer.usage_reported is protocol.estimated  # type: ignore[attr-defined]
