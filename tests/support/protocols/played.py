"""The loop against an endpoint that plays a protocol."""

from __future__ import annotations

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox
from drone.agent.values import ModelCallFailed
from shared.events import AssistantStep, RetryStep
from shared.messages import Message
from shared.outcome import Outcome
from shared.transcripts import assert_valid
from shared.work_order import Limits, OrderProvider
from tests.support.endpoints import Endpoint, Said
from tests.support.protocols.spoken import Answer, Part, Spoken
from tests.support.scripted import Called

ONCE = Limits(max_retries=0)


class Played:
    """A run whose model gives these answers, and then says that it is done."""

    def __init__(self, protocol: Spoken, *said: Said, provider: OrderProvider | None = None) -> None:
        with Endpoint(*said, protocol.answer(Answer("Done."))) as endpoint:
            self.called = Called("", provider or protocol.provider(endpoint.url))
            self.toolbox = EchoToolbox()
            self.agent = Agent(
                self.called.model,
                self.toolbox,
                self.called.recorder,
                self.called.controls,
                self.called.limits,
                self.called.clock,
            )
            self.outcome: Outcome = self.agent.run("Rules.", (), "Go.")
            self.called.model.close()
        assert_valid(self.agent.transcript)
        self.bodies = [asked.body for asked in endpoint.asked]
        self.parts: list[list[Part]] = [protocol.parts(body) for body in self.bodies]
        """The parts of each request after the first message of the user."""

    @property
    def retries(self) -> list[RetryStep]:
        return [body for body in self.called.recorder.bodies if isinstance(body, RetryStep)]

    @property
    def answers(self) -> list[AssistantStep]:
        return [body for body in self.called.recorder.bodies if isinstance(body, AssistantStep)]


def refusal_of(called: Called, *messages: Message) -> ModelCallFailed:
    """How a call failed that must fail."""
    try:
        called.ask(*messages)
    except ModelCallFailed as failed:
        return failed
    raise AssertionError("the call was answered")
