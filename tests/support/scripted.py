"""The scripted model (a stand-in) as a real HTTP server, and the loop with a scripted model without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.in_memory import EchoToolbox, KeptEvents, QuietControls
from drone.agent.values import ToolSpec
from drone.model.litellm_model import LiteLLMModel
from drone.model.scripted.server import ScriptedServer
from drone.model.stream_reader import Waits
from shared.clock import Clock, SystemClock
from shared.messages import Message
from shared.outcome import Outcome
from shared.work_order import Limits, OrderProvider
from tests.support.clocks import HandClock
from tests.support.scripted_model import ScriptedModel
from tests.support.transcripts import assert_valid

ScriptedFactory = Callable[..., ScriptedServer]
HELLO = (Message(role="system", content="You are tested."), Message(role="user", content="Hello."))


@pytest.fixture
def scripted() -> Iterator[ScriptedFactory]:
    """A function that starts a scripted model (a stand-in) for a script; all of them end with the test."""
    with ExitStack() as stack:

        def start(script: Any, **settings: Any) -> ScriptedServer:
            return stack.enter_context(ScriptedServer(script, **settings))

        yield start


@pytest.fixture(scope="session")
def warm_model() -> None:
    """Load and warm litellm once, so that this does not count towards a test's time limit."""
    from drone.model import preload

    assert preload.WARM, preload.PROBLEM


def says(text: str, **more: Any) -> dict[str, Any]:
    """A reply with text only: the model stops."""
    return {"text": text, **more}


def calls(*texts: str, **more: Any) -> dict[str, Any]:
    """A reply that calls `echo` once for each text."""
    return {"tool_calls": [{"name": "echo", "arguments": {"text": text}} for text in texts], **more}


def submits(text: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "submit", "arguments": {"text": text}}]}


def raising(error: BaseException) -> Callable[[object], None]:
    """A function that raises this error."""

    def fail(_: object) -> None:
        raise error

    return fail


@dataclass
class Loop:
    """The loop with all its dependencies in memory."""

    script: list[dict[str, Any]]
    limits: Limits = field(default_factory=Limits)
    cost_usd: float | None = 0.0
    clock: HandClock = field(default_factory=HandClock)
    controls: QuietControls = field(default_factory=QuietControls)
    prompt: str = "Do it."
    recorder: KeptEvents = field(default_factory=KeptEvents)
    toolbox: EchoToolbox = field(default_factory=EchoToolbox)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self.script, self.clock, cost_usd=self.cost_usd)
        self.agent = Agent(self.model, self.toolbox, self.recorder, self.controls, self.limits, self.clock)

    def run(self, *history: Message) -> Outcome:
        """Run to the end, and assert that the transcript is valid."""
        try:
            outcome = self.agent.run("You are tested.", history, self.prompt)
            self.agent.end(outcome)
            return outcome
        finally:
            assert_valid(self.agent.transcript)

    @property
    def told(self) -> list[tuple[str, str]]:
        """Role and content of each message after the opening ones."""
        return [(message.role, message.content) for message in self.agent.transcript[2:]]

    @property
    def kinds(self) -> list[str]:
        return [body.kind for body in self.recorder.bodies]


@dataclass
class Called:
    """LiteLLM behind the loop's protocol, with a recorder and controls that a test can inspect."""

    server_url: str
    provider: OrderProvider | None = None
    limits: Limits = field(default_factory=lambda: Limits(base_delay=0))
    clock: Clock = field(default_factory=SystemClock)
    waits: Waits = field(default_factory=Waits)
    recorder: KeptEvents = field(default_factory=KeptEvents)
    controls: QuietControls = field(default_factory=QuietControls)

    def __post_init__(self) -> None:
        provider = self.provider or OrderProvider(name="scripted", model="openai/scripted", api_base=self.server_url)
        self.model = LiteLLMModel(
            provider, provider.api_key, self.limits, self.recorder, self.clock, self.controls, self.waits
        )

    def ask(self, *messages: Message) -> Any:
        tool = ToolSpec("echo", "Return the text.", {"type": "object", "properties": {"text": {"type": "string"}}})
        return self.model.answer(messages or HELLO, [tool], self.recorder.delta)


def silent_for_long(called: Called, condition: Callable[[], bool]) -> None:
    """While the condition is true, an hour passes each time that nothing arrived for a moment, until the first retry.

    At other times the clock of the call, which a test sets by hand, stands still.
    """
    clock = called.clock
    assert isinstance(clock, HandClock)

    def check() -> None:
        if condition() and not called.recorder.bodies:
            clock.sleep(3600)

    called.controls.check = check  # type: ignore[method-assign]
