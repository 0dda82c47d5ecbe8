"""Turns a run's records and streamed text into the engine's events, each exactly once (O-046, O-053)."""

from __future__ import annotations

from drone.agent.hooks import events as hook
from drone.agent.hooks.bus import HookBus
from drone.agent.protocols import Recorder
from drone.agent.values import DeltaKind, WaitsFor
from shared.events import (
    AssistantStep,
    Body,
    CompactionStep,
    ErrorStep,
    ReasoningStep,
    RetryStep,
    RunEnded,
    ToolCallStep,
    ToolResultStep,
    Usage,
    UserStep,
)
from shared.messages import Message
from shared.transcripts import messages_of

EXTENSION_FAILED = "E-EXTENSION"


class ObservedRecorder:
    """Records through the wrapped recorder, and notifies extensions afterwards, when the record is durable.

    Without listeners it only passes records on. Steps of child agents cause no events: children have no extensions.
    """

    def __init__(self, recorder: Recorder, hooks: HookBus, max_retries: int = 0) -> None:
        self._recorder = recorder
        self._hooks = hooks
        self._max_retries = max_retries
        self.context_tokens: int | None = None
        """Tokens of the conversation as of the last answer or compaction; None while no count is known."""
        self._thought: ReasoningStep | None = None
        self._answering = False
        self._retry: RetryStep | None = None
        self._running = ""
        self._model = ""

    def record(self, body: Body) -> int:
        seq = self._recorder.record(body)
        self._count(body)
        if self._hooks.listens():
            self._observe(body)
        return seq

    def delta(self, kind: DeltaKind, text: str) -> None:
        self._recorder.delta(kind, text)
        if not text:
            return
        if kind == "output":
            if self._hooks.listens(hook.ToolExecutionUpdate.name):
                self._hooks.notify(hook.ToolExecutionUpdate(self._running, text))
        elif self._hooks.listens(hook.MessageStart.name, hook.MessageUpdate.name):
            self._answer_starts()
            self._hooks.notify(hook.MessageUpdate(kind, text))

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        self._recorder.doing(text, waits_for)

    def _count(self, body: Body) -> None:
        if isinstance(body, AssistantStep):
            self.context_tokens = _context(body.usage) or self.context_tokens
        elif isinstance(body, CompactionStep):
            self.context_tokens = body.tokens_after or None

    def _observe(self, body: Body) -> None:
        self._retry_ends(body)
        match body:
            case ReasoningStep():
                self._thought = body
            case AssistantStep():
                self._answered(body)
            case UserStep():
                self._answering = False
                self._hooks.notify(hook.MessageEnd(_message(body)))
            case ToolCallStep():
                self._running = body.call_id
                self._hooks.notify(hook.ToolExecutionStart(body.call_id, body.tool, body.arguments))
            case ToolResultStep():
                self._returned(body)
            case _:
                self._went_otherwise(body)

    def _went_otherwise(self, body: Body) -> None:
        match body:
            case RetryStep():
                self._retry_starts(body)
            case CompactionStep():
                self._hooks.notify(hook.Compacted(body.summary, body.tokens_before, body.tokens_after))
            case ErrorStep() if body.code != EXTENSION_FAILED:
                self._answering = False
                self._hooks.notify(hook.AgentError(body.what, body.detail))
            case _:
                pass

    def _answer_starts(self) -> None:
        if not self._answering:
            self._answering = True
            self._hooks.notify(hook.MessageStart())

    def _answered(self, body: AssistantStep) -> None:
        if body.model and body.model != self._model:
            previous, self._model = self._model, body.model
            self._hooks.notify(hook.ModelSelect(body.model, previous))
        self._answer_starts()
        thought, self._thought, self._answering = self._thought, None, False
        self._hooks.notify(hook.MessageEnd(_message(body) if thought is None else _message(thought, body)))

    def _returned(self, body: ToolResultStep) -> None:
        self._hooks.notify(hook.ToolExecutionEnd(body.call_id, body.output, body.return_code, body.is_error))
        self._hooks.notify(hook.MessageEnd(_message(body)))
        self._running = ""

    def _retry_starts(self, body: RetryStep) -> None:
        self._retry = body
        self._hooks.notify(hook.RetryStart(body.attempt, self._max_retries, body.delay_s, body.error_class))

    def _retry_ends(self, body: Body) -> None:
        """Notify how the retried call ended, as soon as a recorded step shows it."""
        if self._retry is None or (error := _error_of_retry(body)) is None:
            return
        attempt, self._retry = self._retry.attempt, None
        self._hooks.notify(hook.RetryEnd(attempt, success=not error, error=error))


def _error_of_retry(body: Body) -> str | None:
    """Why a retried call failed, according to the next step; empty if it succeeded, None if the step does not say."""
    match body:
        case ReasoningStep() | AssistantStep() | CompactionStep():
            return ""
        case RetryStep():
            return body.error
        case ErrorStep() if body.code != EXTENSION_FAILED:
            return body.what
        case UserStep() | RunEnded():
            return "The call was interrupted."
        case _:
            return None


def _message(*bodies: Body) -> Message:
    return messages_of(bodies)[-1]


def _context(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens
