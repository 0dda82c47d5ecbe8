"""An in-memory environment for the loop: events kept in memory, no input from outside, tools that echo.

For the warm-up, the benchmarks and the tests; it behaves like the real one, except that nothing leaves the process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal

from drone.agent.hooks.events import BeforeCompaction, Block, HookEvent
from drone.agent.values import DeltaKind, Patched, Ruling, ToolResult, ToolSpec, UserMessage, Verdict, WaitsFor
from shared.errors import Submitted
from shared.events import Body
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome

ECHO = ToolSpec("echo", "Return the text.", {"type": "object", "properties": {"text": {"type": "string"}}})
SUBMIT = ToolSpec(
    "submit", "Report that the work is done.", {"type": "object", "properties": {"text": {"type": "string"}}}
)


class KeptEvents:
    """A recorder that keeps everything in memory."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.deltas: list[tuple[DeltaKind, str]] = []
        self.now_doing = ""
        self.waited_for: list[WaitsFor] = []

    def record(self, body: Body) -> int:
        self.bodies.append(body)
        return len(self.bodies)

    def delta(self, kind: DeltaKind, text: str) -> None:
        self.deltas.append((kind, text))

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        self.now_doing = text
        self.waited_for.append(waits_for)


class QuietControls:
    """Controls that return only what was put into them: texts, or a signal that the next check raises."""

    def __init__(self) -> None:
        self.to_steer: list[str] = []
        self.to_follow_up: list[str] = []
        self.signal: BaseException | None = None
        self.rulings: dict[str, Ruling] = {}
        self.to_compact: str | None = None

    def check(self) -> None:
        signal, self.signal = self.signal, None
        if signal is not None:
            raise signal

    def steering(self) -> list[UserMessage]:
        texts, self.to_steer = self.to_steer, []
        return [UserMessage(text) for text in texts]

    def follow_ups(self) -> list[UserMessage]:
        texts, self.to_follow_up = self.to_follow_up, []
        return [UserMessage(text) for text in texts]

    def pending(self) -> bool:
        return bool(self.to_steer or self.to_follow_up)

    def ruling(self, call_id: str) -> Ruling | None:
        return self.rulings.get(call_id)

    def compaction_asked(self) -> str | None:
        asked, self.to_compact = self.to_compact, None
        return asked


class NoHooks:
    """Hooks of a run without extensions."""

    def notify(self, event: HookEvent) -> None:
        """Do nothing: there are no listeners."""

    def system_prompt(self, text: str) -> str:
        return text

    def input(self, text: str) -> str:
        return text

    def receive(self, text: str, _source: Literal["steer", "follow_up"]) -> str | Block:
        return text

    def context(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages

    def ephemeral(self) -> Sequence[Message]:
        return ()

    def block(self, _call: ToolCall) -> str | None:
        return None

    def patched(self, _call: ToolCall, result: ToolResult) -> Patched:
        return Patched(result)

    def before_compaction(self, _event: BeforeCompaction) -> None:
        return None


class NoGuardrails:
    """Guardrails of a run without rules: every call is run."""

    def turn_starts(self) -> None:
        """Nothing is counted."""

    def turn_ends(self) -> None:
        """Nothing was counted."""

    def before(self, _call: ToolCall) -> Verdict:
        return Verdict()

    def after(self, _call: ToolCall, _result: ToolResult) -> Verdict:
        return Verdict()

    def unusable(self, _call: ToolCall, _problem: str) -> Verdict:
        return Verdict()


class EchoToolbox:
    """Two tools: `echo` returns its text, `submit` ends the run. `ran` contains every call that was run.

    `on_call` is called at the start of each call: it may let time pass, or raise.
    """

    def __init__(self, on_call: Callable[[ToolCall], object] = lambda _: None) -> None:
        self.ran: list[ToolCall] = []
        self.on_call = on_call

    def specs(self) -> list[ToolSpec]:
        return [ECHO, SUBMIT]

    def execute(self, call: ToolCall) -> ToolResult:
        self.ran.append(call)
        self.on_call(call)
        text = str(json.loads(call.arguments).get("text", ""))
        if call.name == SUBMIT.name:
            said = Message(role="tool", tool_call_id=call.id, content="Submitted.")
            raise Submitted(said, outcome=Outcome(ExitStatus.SUBMITTED, "The model submitted its work.", text))
        return ToolResult(output=text, output_bytes=len(text.encode()))
