"""The run's record and its transcript, kept in sync: every message is recorded durably before it is acted on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from drone.agent.answer_checks import parsed_arguments
from drone.agent.protocols import Recorder
from drone.agent.transcript import Transcript
from drone.agent.values import ModelCallFailed, ModelResponse, RawAnswer, ToolResult, UserMessage, with_note
from shared.errors import Interrupted, InterruptLoop, Submitted
from shared.events import AssistantStep, ErrorStep, ReasoningStep, ToolCallStep, ToolResultStep, UserStep
from shared.messages import Message, ToolCall
from shared.transcripts import BROKEN_OFF, not_run, said

Source = Literal["prompt", "steer", "follow_up", "loop"]
StoreLog = Callable[[Path], str | None]
StoreRaw = Callable[[RawAnswer, Message], tuple[str | None, str]]
"""Keeps a raw answer, from which the message was read. Returns its SHA-256, and why it was not kept, or not whole."""


class RecordedTranscript:
    """Writes each message once to the recorder, then to the transcript. If recording fails, nothing is appended."""

    def __init__(self, recorder: Recorder, store_log: StoreLog | None = None) -> None:
        self.transcript = Transcript()
        self._recorder = recorder
        self._store_log = store_log
        self._running: set[str] = set()

    def open(self, system: str, history: Sequence[Message]) -> None:
        """Start with the system prompt and the session so far, which are not recorded."""
        self.transcript.append(Message(role="system", content=system), *history)

    def say(self, texts: Iterable[str], source: Source) -> None:
        """Add messages on behalf of users or the loop."""
        for text in texts:
            self._add(UserStep(text=text, source=source))

    def hear(self, messages: Iterable[UserMessage], source: Source) -> None:
        """Add messages of users, each recorded under its id."""
        for message in messages:
            self._add(UserStep(text=message.text, source=source, message=message.id))

    def _add(self, step: UserStep) -> None:
        self._recorder.record(step)
        self.transcript.append(said(step))

    def answered(self, answer: ModelResponse, message: Message, store_raw: StoreRaw | None = None) -> None:
        """Add the model's message, with its calls; `store_raw` keeps the answer as it came."""
        sha256, note = store_raw(answer.raw, message) if store_raw is not None else (None, "")
        if message.thinking or message.thinking_blocks:
            self._recorder.record(
                ReasoningStep(text=message.thinking, blocks=message.thinking_blocks, duration_ms=answer.thinking_ms)
            )
        self._recorder.record(
            AssistantStep(
                text=message.content,
                tool_calls=message.tool_calls,
                usage=answer.usage,
                model=answer.model,
                finish_reason=answer.finish_reason,
                duration_ms=answer.duration_ms,
                raw_sha256=sha256,
                raw_note=note,
            )
        )
        self.transcript.append(message)

    def called(self, call: ToolCall) -> None:
        """Record a call that is about to run."""
        self._recorder.record(ToolCallStep(call_id=call.id, tool=call.name, arguments=parsed_arguments(call)))
        self._running.add(call.id)

    def returned(self, call: ToolCall, result: ToolResult, duration_ms: int) -> None:
        """Add a call's result."""
        log = self._store_log(result.log) if result.log and self._store_log else None
        self._recorder.record(
            ToolResultStep(
                call_id=call.id,
                output=result.output,
                execution=result.execution,
                note=result.note,
                return_code=result.return_code,
                is_error=result.is_error,
                duration_ms=duration_ms,
                output_bytes=result.output_bytes,
                log_sha256=log,
            )
        )
        self.transcript.append(
            Message(role="tool", tool_call_id=call.id, content=result.output, is_error=result.is_error)
        )
        self._running.discard(call.id)

    def interrupted(self, signal: InterruptLoop) -> None:
        """Answer every call that is still open, then add the signal's messages.

        In this order, because nothing may come between a call and its result.
        """
        for call in self.transcript.open_calls():
            self._close(call, signal)
        texts = [message.content for message in signal.messages if message.role == "user"]
        self.say(texts, "steer" if isinstance(signal, Interrupted) else "loop")

    def close(self, call: ToolCall, signal: InterruptLoop) -> None:
        """Answer a call that the signal broke off, if it has no answer yet: those after it may have their results."""
        if call.id in self._running:
            self._close(call, signal)

    def model_failed(self, failed: ModelCallFailed) -> None:
        """Record that there is no answer, with a sentence for people and the full detail."""
        self._recorder.record(ErrorStep(what=failed.what, detail=failed.detail, code=failed.code))

    def abandoned(self) -> None:
        """Answer open calls after an unexpected error; the run's boundary records the error."""
        self.interrupted(InterruptLoop())

    def _close(self, call: ToolCall, signal: InterruptLoop) -> None:
        given = {message.tool_call_id: message.content for message in signal.messages if message.role == "tool"}
        ran = call.id in self._running
        if not ran:
            self.called(call)
        self.returned(call, _open_result(given.get(call.id), signal) if ran else _not_run(call, signal), 0)


def _open_result(given: str | None, signal: InterruptLoop) -> ToolResult:
    """Result of the call that was running when the signal came; `given` is its own answer or its output so far."""
    if isinstance(signal, Submitted):
        text = given or "Submitted."
        return ToolResult(text, execution="submitted", note=text)
    note = f"{BROKEN_OFF}: {_why(signal)}"
    if given is not None:
        note = "(ended early: the run was asked to stop)"
    return ToolResult(with_note(given or "", note), is_error=True, execution="broken_off", note=note)


def _not_run(call: ToolCall, signal: InterruptLoop) -> ToolResult:
    text = not_run(call, _why(signal)).content
    return ToolResult(text, is_error=True, execution="held_back", note=text)


def _why(signal: InterruptLoop) -> str:
    return str(signal) or "the run was interrupted."
