"""Conversations that exceed a window, and the loop with a compaction and all its dependencies in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from drone.agent.agent import Agent
from drone.agent.budget import RunBudget
from drone.agent.compaction.estimate import Estimate
from drone.agent.compaction.window_compaction import WindowCompaction
from drone.agent.hooks.events import BeforeCompaction, CancelCompaction
from drone.agent.in_memory import EchoToolbox, KeptEvents, NoHooks, QuietControls
from drone.agent.transcript import Transcript
from shared.events import CompactionStep
from shared.messages import Message, ToolCall
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.scripted_model import ScriptedModel
from tests.support.transcripts import assert_valid

SYSTEM = Message(role="system", content="You are tested.")
WINDOW = 16_000
LEFT_OUT = "characters left out to save room"


@dataclass
class Heard(NoHooks):
    """Hooks that keep each compaction event, and return `answer` to it."""

    answer: CancelCompaction | str | None = None
    events: list[BeforeCompaction] = field(default_factory=list)

    def before_compaction(self, event: BeforeCompaction) -> CancelCompaction | str | None:
        self.events.append(event)
        return self.answer


@dataclass
class Compacting:
    """A compaction with a scripted model that writes `summaries`, one after the other."""

    summaries: Sequence[dict[str, Any]] = ({"text": "A summary.", "repeat": True},)
    script: Sequence[dict[str, Any]] = ()
    window: int = WINDOW
    request: str = ""
    hooks: Heard = field(default_factory=Heard)
    limits: Limits = field(default_factory=Limits)
    clock: HandClock = field(default_factory=HandClock)
    controls: QuietControls = field(default_factory=QuietControls)
    recorder: KeptEvents = field(default_factory=KeptEvents)
    toolbox: EchoToolbox = field(default_factory=EchoToolbox)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(
            list(self.script), self.clock, cost_usd=0.01, window=self.window, summaries=self.summaries
        )
        self.budget = RunBudget(self.limits, self.clock)
        self.compaction = WindowCompaction(
            self.model, self.recorder, self.hooks, self.budget, self.toolbox.specs, self.request
        )
        self.estimate = Estimate(self.model, self.toolbox.specs, self.limits)
        """An uncalibrated estimate, for measurements in tests."""
        self.agent = Agent(
            self.model,
            self.toolbox,
            self.recorder,
            self.controls,
            self.limits,
            self.clock,
            budget=self.budget,
            hooks=self.hooks,
            compaction=self.compaction,
        )

    @property
    def steps(self) -> list[CompactionStep]:
        """The recorded compactions."""
        return [body for body in self.recorder.bodies if isinstance(body, CompactionStep)]

    @property
    def asked_with(self) -> list[str]:
        """The text of each request for a summary."""
        return [messages[-1].content for messages in self.model.asked_for_summary]


def outline(message: Message) -> tuple[object, ...]:
    """All of a message but what may be shortened: a result's text, and the texts of a message with calls."""
    calls = [(call.id, call.name) for call in message.tool_calls]
    kept = None if message.role == "tool" or calls else message.content
    return message.role, calls, message.tool_call_id, kept


def is_as_recorded(now: Message, recorded: Message) -> bool:
    """Whether a message is the recorded one, or that one shortened and saying so."""
    shortened = outline(now) == outline(recorded) and LEFT_OUT in now.model_dump_json()
    return now == recorded or (shortened and len(now.model_dump_json()) < len(recorded.model_dump_json()))


def said(role: Any, text: str) -> Message:
    return Message(role=role, content=text)


def called(number: int, result: str, tool: str = "echo", *, failed: bool = False, **arguments: Any) -> list[Message]:
    """One step: a call of a tool and its result."""
    call = ToolCall(id=f"call_{number}_0", name=tool, arguments=json.dumps(arguments))
    return [
        Message(role="assistant", content=f"Step {number}.", tool_calls=(call,)),
        Message(role="tool", tool_call_id=call.id, content=result, is_error=failed),
    ]


def conversation(*messages: Message) -> Transcript:
    """A valid transcript with a system prompt before the messages."""
    assert_valid([SYSTEM, *messages])
    return Transcript([SYSTEM, *messages])


def long_conversation(steps: int = 30, characters: int = 2_000) -> Transcript:
    """A prompt and this many steps, each with a result of this many characters: by default more than 16,000 tokens."""
    past = [message for n in range(steps) for message in called(n, "line\n" * (characters // 5))]
    return conversation(said("user", "Mend it."), *past)
