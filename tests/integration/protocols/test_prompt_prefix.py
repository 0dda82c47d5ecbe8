"""What a provider's cache lives on: every request begins with the bytes of the one before, also after a resumption."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.budget import RunBudget
from drone.agent.compaction import WindowCompaction
from drone.agent.in_memory import EchoToolbox, NoHooks
from shared.events import Body, CompactionStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus
from shared.transcripts import messages_of
from tests.support.endpoints import Doc, Endpoint
from tests.support.protocols import PROTOCOLS
from tests.support.protocols.spoken import Answer, Spoken, SpokenCall
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


def head(protocol: Spoken, body: Doc) -> bytes:
    return json.dumps(unmarked(protocol.prefix(body))).encode()


class Runs:
    """Runs at one endpoint, each in a fresh agent and with a fresh model, as on another drone."""

    def __init__(self, protocol: Spoken, endpoint: Endpoint) -> None:
        self.protocol = protocol
        self.endpoint = endpoint
        self.bodies: list[Body] = []

    def run(
        self, prompt: str, history: Sequence[Message] = (), stop_after: int = 99, compact_at: int = 0
    ) -> ExitStatus:
        called = Called("", self.protocol.provider(self.endpoint.url))
        toolbox = EchoToolbox()
        called.limits = called.model.limits = called.limits.model_copy(update={"max_iterations": stop_after})
        budget = RunBudget(called.limits, called.clock)
        compaction = WindowCompaction(called.model, called.recorder, NoHooks(), budget, toolbox.specs, "")

        def on_call(_: ToolCall) -> None:
            if len(toolbox.ran) == compact_at:
                called.controls.to_compact = ""

        toolbox.on_call = on_call
        agent = Agent(
            called.model,
            toolbox,
            called.recorder,
            called.controls,
            called.limits,
            called.clock,
            budget=budget,
            compaction=compaction,
        )
        outcome = agent.run(RULES, history, prompt)
        called.model.close()
        # As they are stored and sent: what is lost on that way is lost here.
        self.bodies = [type(body).model_validate_json(body.model_dump_json()) for body in called.recorder.bodies]
        return outcome.exit_status


def test_a_resumed_run_continues_with_the_bytes_of_the_one_that_was_cut_off() -> None:
    for protocol in PROTOCOLS:
        with Endpoint(*(protocol.answer(step(n)) for n in range(5)), protocol.answer(Answer("Done."))) as endpoint:
            runs = Runs(protocol, endpoint)
            assert runs.run("Go.", stop_after=3) is ExitStatus.MAX_ITERATIONS
            assert runs.run("Continue.", messages_of(runs.bodies)) is ExitStatus.STOPPED
            asked = [each.body for each in endpoint.asked]
        assert len(asked) == 6, protocol
        assert len({head(protocol, body) for body in asked}) == 1, protocol
        for earlier, later in itertools.pairwise(asked):
            assert turns(later)[: len(turns(earlier))] == turns(earlier)


def test_between_two_compactions_only_the_end_of_a_request_changes() -> None:
    for protocol in PROTOCOLS:
        answers = [protocol.answer(step(n)) for n in range(2)]
        summary = protocol.answer(Answer("A summary of what happened."))
        later = [protocol.answer(step(n)) for n in range(2, 5)]
        with Endpoint(*answers, summary, *later, protocol.answer(Answer("Done."))) as endpoint:
            runs = Runs(protocol, endpoint)
            assert runs.run("Go. " * 2000, compact_at=2) is ExitStatus.STOPPED
            asked = [each.body for each in endpoint.asked]
        assert sum(isinstance(body, CompactionStep) for body in runs.bodies) == 1, protocol
        with_tools = [body for body in asked if "tools" in body or "toolConfig" in body]
        assert len({head(protocol, body) for body in with_tools}) == 1, protocol
        after = asked[len(asked) - 4 :]
        assert "A summary of what happened." in turns(after[0])[0] + turns(after[0])[1], protocol
        for earlier, following in itertools.pairwise(after):
            assert turns(following)[: len(turns(earlier))] == turns(earlier)
