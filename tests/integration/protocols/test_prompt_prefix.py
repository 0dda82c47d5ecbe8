"""What a provider's cache lives on: every request begins with the bytes of the one before, also after a resumption."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox
from shared.outcome import ExitStatus
from shared.transcripts import messages_of
from shared.work_order import Limits
from tests.support.endpoints import Doc, Endpoint
from tests.support.protocols import PROTOCOLS
from tests.support.protocols.spoken import Answer, SpokenCall
from tests.support.scripted import Called

pytestmark = pytest.mark.usefixtures("warm_model")
RULES = "Rules of the house. " * 40


def step(number: int) -> Answer:
    return Answer(f"Step {number}.", f"Thought {number}.", "c2ln", (SpokenCall(f"a1b2c3d4{number}"),))


def unmarked(value: Any) -> Any:
    """Without the marks of the cache, which move on."""
    if isinstance(value, list):
        return [unmarked(each) for each in value if not (isinstance(each, dict) and "cachePoint" in each)]
    if isinstance(value, dict):
        return {name: unmarked(each) for name, each in value.items() if name != "cache_control"}
    return value


def turns(body: Doc) -> list[str]:
    """The bytes of each message, in the order in which the provider reads them."""
    messages = body.get("messages") or body.get("input") or body["contents"]
    return [json.dumps(unmarked(each)) for each in messages]


def test_a_resumed_run_continues_with_the_bytes_of_the_one_that_was_cut_off() -> None:
    for protocol in PROTOCOLS:
        with Endpoint(*(protocol.answer(step(n)) for n in range(3)), protocol.answer(Answer("Done."))) as endpoint:
            # Each run in a fresh agent and with a fresh model, as on another drone, knows what was stored.
            bodies: list[Any] = []
            for prompt, most, end in (("Go.", 2, ExitStatus.MAX_ITERATIONS), ("Continue.", 99, ExitStatus.STOPPED)):
                limits = Limits(base_delay=0, max_iterations=most)
                called = Called("", protocol.provider(endpoint.url), limits=limits)
                agent = Agent(called.model, EchoToolbox(), called.recorder, called.controls, limits, called.clock)
                assert agent.run(RULES, messages_of(bodies), prompt).exit_status is end
                called.model.close()
                bodies = [type(body).model_validate_json(body.model_dump_json()) for body in called.recorder.bodies]
        asked = endpoint.bodies
        assert len(asked) == 4, protocol
        assert len({json.dumps(unmarked(protocol.prefix(body))) for body in asked}) == 1, protocol
        for earlier, later in itertools.pairwise(asked):
            assert turns(later)[: len(turns(earlier))] == turns(earlier), protocol
