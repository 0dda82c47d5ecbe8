"""Replaces the model, the people and unavailable tools with the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from drone.agent.protocols import Toolbox
from drone.agent.values import ModelResponse, OnDelta, Ruling, ToolResult, ToolSpec, UserMessage
from drone.replay.path_mapping import Places
from drone.replay.recording import RecordedCall, RecordedTurn, Recording
from shared.errors import InterruptLoop
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.trajectories import NOT_EXECUTED


@dataclass
class Script:
    """The recording, and how far it has been played. It assigns new call ids, because recorded ones may repeat."""

    recording: Recording
    places: Places
    played: int = 0
    """Number of answers given so far."""
    _calls: dict[str, tuple[int, int, RecordedCall]] = field(default_factory=dict)

    @property
    def turn(self) -> RecordedTurn | None:
        """The last answer given."""
        return self.recording.turns[self.played - 1] if self.played else None

    @property
    def left(self) -> int:
        """Number of answers not given yet."""
        return len(self.recording.turns) - self.played

    def next(self) -> tuple[RecordedTurn, tuple[ToolCall, ...]]:
        """Return the next answer, with its calls mapped to the replay. Raises InterruptLoop at the recording's end."""
        if not self.left:
            raise InterruptLoop(outcome=Outcome(ExitStatus.STOPPED, "The recording ends here."))
        turn = self.recording.turns[self.played]
        self.played += 1
        made = []
        for number, call in enumerate(turn.calls, start=1):
            name = f"replay_{self.played}_{number}"
            self._calls[name] = (self.played, number, call)
            made.append(ToolCall(id=name, name=call.tool, arguments=self.places.arguments_here(call.arguments)))
        return turn, tuple(made)

    def find(self, call_id: str) -> tuple[int, int, RecordedCall]:
        """Return step, number in the step and call for an id."""
        return self._calls[call_id]


class RecordedModel:
    """Implements `drone.agent.protocols.Model` with the answers of a recording."""

    window = 0

    def __init__(self, script: Script) -> None:
        self._script = script

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        """Return the next recorded answer, regardless of the arguments."""
        del messages, tools, on_delta
        turn, calls = self._script.next()
        message = Message(role="assistant", content=turn.content, thinking=turn.thinking, tool_calls=calls)
        # In the recording, an unusable answer was followed by a message: repeat its text.
        problem = turn.said[0] if turn.said and not calls and not turn.content.strip() else ""
        return ModelResponse(message, model="recorded", format_problem=problem)


class RecordedPeople:
    """Implements `drone.agent.protocols.Controls`: repeats recorded user messages, and ends the run on request."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._told = 0
        self.stop: InterruptLoop | None = None

    def check(self) -> None:
        if self.stop is not None:
            raise self.stop

    def steering(self) -> list[UserMessage]:
        """Return the messages that followed the results of the last answer, once."""
        turn = self._script.turn
        if turn is None or self._told == self._script.played:
            return []
        self._told = self._script.played
        return [UserMessage(text) for text in turn.said]

    def follow_ups(self) -> list[UserMessage]:
        return []

    def pending(self) -> bool:
        return False

    def ruling(self, _call_id: str) -> Ruling | None:
        return None

    def compaction_asked(self) -> str | None:
        return None


class RecordedToolbox:
    """Implements `drone.agent.protocols.Toolbox`: the real tools, but calls not run in the recording are skipped.

    Unavailable tools are listed by name and not run: those of MCP servers and child agents, and those that did not
    exist in the recording either, because the answer to a call of them lists the tools that did.
    """

    def __init__(self, toolbox: Toolbox, script: Script) -> None:
        self._toolbox = toolbox
        self._script = script
        own = toolbox.specs()
        called = {call.tool for turn in script.recording.turns for call in turn.calls}
        self._missing = called - {spec.name for spec in own}
        self._specs = [*own, *(ToolSpec(name, "Not available in a replay.") for name in sorted(self._missing) if name)]

    def specs(self) -> list[ToolSpec]:
        return self._specs

    def execute(self, call: ToolCall) -> ToolResult:
        if not self.runs(call.id, call.name):
            return ToolResult(NOT_EXECUTED, is_error=True, execution="held_back", note=NOT_EXECUTED)
        return self._toolbox.execute(call)

    def runs(self, call_id: str, tool: str) -> bool:
        """Whether this call is run here."""
        return self._script.find(call_id)[2].executed and tool not in self._missing
