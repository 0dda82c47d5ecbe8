"""The loop's surroundings when nobody watches: events kept in memory, no orders from outside, tools that echo.

For the warm-up, the benchmarks and the tests; real in every respect but that nothing leaves the process.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from drone.agent.protocols import DeltaKind, ToolResult, ToolSpec
from shared.errors import Submitted
from shared.events import Body
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome

ECHO = ToolSpec("echo", "Return the text.", {"type": "object", "properties": {"text": {"type": "string"}}})
SUBMIT = ToolSpec(
    "submit", "Say that the work is done.", {"type": "object", "properties": {"text": {"type": "string"}}}
)


class KeptEvents:
    """A recorder that keeps what it is given."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self.deltas: list[tuple[DeltaKind, str]] = []
        self.now_doing = ""

    def record(self, body: Body) -> int:
        self.bodies.append(body)
        return len(self.bodies)

    def delta(self, kind: DeltaKind, text: str) -> None:
        self.deltas.append((kind, text))

    def doing(self, text: str) -> None:
        self.now_doing = text


class QuietControls:
    """Controls through which only what is put into them is said: texts, or a signal that the next check raises."""

    def __init__(self) -> None:
        self.to_steer: list[str] = []
        self.to_follow_up: list[str] = []
        self.signal: BaseException | None = None

    def check(self) -> None:
        signal, self.signal = self.signal, None
        if signal is not None:
            raise signal

    def steering(self) -> list[str]:
        texts, self.to_steer = self.to_steer, []
        return texts

    def follow_ups(self) -> list[str]:
        texts, self.to_follow_up = self.to_follow_up, []
        return texts


class EchoToolbox:
    """Two tools: `echo` returns its text, `submit` ends the run. `ran` has every call that was run.

    `on_call` is called first, as long as a call runs: it may let time pass, or raise.
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
