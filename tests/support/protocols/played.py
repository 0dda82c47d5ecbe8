"""A model, and the loop, against an endpoint that plays a protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox
from drone.agent.values import ModelCallFailed
from shared.events import RetryStep
from shared.messages import Message
from shared.outcome import Outcome
from shared.work_order import Limits, OrderProvider
from tests.support.endpoints import Endpoint, Said
from tests.support.protocols.spoken import Answer, Part, Spoken
from tests.support.scripted import Called
from tests.support.transcripts import assert_valid

ONCE = Limits(max_retries=0)


@contextmanager
def calling(protocol: Spoken, *said: Said, **how: Any) -> Iterator[tuple[Called, Endpoint]]:
    """A model at an endpoint that gives these answers."""
    with Endpoint(*said) as endpoint:
        called = Called("", protocol.provider(endpoint.url), **how)
        yield called, endpoint
        called.model.close()


class Ran:
    """The loop against an endpoint that gives these answers, run to its end."""

    def __init__(self, provider: Callable[[str], OrderProvider], *said: Said) -> None:
        with Endpoint(*said) as endpoint:
            called = Called("", provider(endpoint.url))
            self.toolbox = EchoToolbox()
            self.agent = Agent(
                called.model, self.toolbox, called.recorder, called.controls, called.limits, called.clock
            )
            self.outcome: Outcome = self.agent.run("Rules.", (), "Go.")
            called.model.close()
        assert_valid(self.agent.transcript)
        self.recorder = called.recorder
        self.bodies = endpoint.bodies

    @property
    def retries(self) -> list[RetryStep]:
        return [body for body in self.recorder.bodies if isinstance(body, RetryStep)]


class Played(Ran):
    """A run whose model gives these answers, and then says that it is done."""

    def __init__(self, protocol: Spoken, *said: Said) -> None:
        super().__init__(protocol.provider, *said, protocol.answer(Answer("Done.")))
        self.parts: list[list[Part]] = [protocol.parts(body) for body in self.bodies]
        """The parts of each request after the first message of the user."""


def refusal_of(called: Called, *messages: Message) -> ModelCallFailed:
    """How a call failed that must fail."""
    try:
        called.ask(*messages)
    except ModelCallFailed as failed:
        return failed
    raise AssertionError("the call was answered")
