"""The spans below a run: its phases, which follow each other without a hole, and in each what happened in it.

A step has the time of its arrival, which is the end of what it reports; how long that took was measured by the drone.
No span leaves its parent: what a burst of late events would put before it is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError

from control_plane.telemetry.tracing.spans import Attributes, AttributeValue, TraceSpan, span_id, within
from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    ChargeStep,
    CheckpointStep,
    ChildStep,
    CompactionStep,
    DecisionStep,
    Delivered,
    ErrorStep,
    Phase,
    RetryStep,
    ReviewerStep,
    ToolCallStep,
    ToolResultStep,
    Usage,
    VerifyStep,
)

_DAY_S = 86_400.0
LONGEST = 200
"""Characters of a text from a drone or a model."""
_BODY: TypeAdapter[Any] = TypeAdapter(Body)
_MODEL_FAILED = "E-MODEL-502"
"""The code of an error step that says that no answer came, after all retries."""
_VERIFYING = "verifying"
"""The phase in which one of the project's commands verifies the work."""
_BESIDE = frozenset({"checkpoint", "child", "comment", "reasoning"})
"""Kinds of events that say nothing about what the loop itself does at that time."""
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "cohere_chat": "cohere",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""LiteLLM's names of providers that the conventions call otherwise."""
_LONGEST = 200


@dataclass(frozen=True)
class TracedRun:
    """A run and the time that its span covers."""

    id: str
    span_id: bytes
    began: datetime
    ended: datetime
    model: str
    """Of its order."""
    session_id: str
    silent_since: datetime | None = None
    """Of a lost run: when its drone was last heard of."""


@dataclass(frozen=True)
class TracedStep:
    """An event of a run. `seq` counts within the run."""

    seq: int
    at: datetime
    body: Any


@dataclass
class _Open:
    """A span that has begun."""

    name: str
    id: bytes
    parent: bytes
    began: datetime
    attributes: dict[str, Any] = field(default_factory=dict)

    def closed(self, ended: datetime, error: str = "") -> TraceSpan:
        return TraceSpan(self.name, self.id, self.parent, self.began, max(self.began, ended), self.attributes, error)


@dataclass(frozen=True)
class _KnownCall:
    """What is known about a call of a model."""

    model: str = ""
    """Empty: that of the order."""
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    more: Attributes = field(default_factory=dict)


def body_of(stored: Mapping[str, Any]) -> Any:
    """A stored event; None for one that this version cannot read, as older ones of a kind that changed."""
    try:
        return _BODY.validate_python(stored)
    except ValidationError:
        return None


class RunSpans:
    """Takes the events of a run in order; `end` returns its spans."""

    def __init__(self, run: TracedRun) -> None:
        self._run = run
        self._spans: list[TraceSpan] = []
        self._phase = _Open("starting", span_id(run.id, "phase", 0), run.span_id, run.began)
        self._mark = self._last = run.began
        """The end of the last thing that the loop did, and the last event of any kind."""
        self._answered = run.began
        self._broken_off = False
        self._calls: dict[str, _Open] = {}
        self._waits: dict[str, _Open] = {}
        self._pauses: list[tuple[_Open, datetime]] = []
        """Pauses before a model call is repeated, each with its end unless the run ends it."""

    def take(self, step: TracedStep) -> None:
        """Take the next event."""
        at = min(max(step.at, self._last), self._run.ended)
        self._last = at
        self._end_pauses(at)
        self._see(TracedStep(step.seq, at, step.body), None)
        if getattr(step.body, "kind", None) not in _BESIDE:
            self._mark = max(self._mark, at)
        self._broken_off = isinstance(step.body, ChargeStep) and step.body.about == "broken_off"

    def end(self) -> list[TraceSpan]:
        """All spans of the run. What had not ended ends with it, or when its drone was last heard of."""
        heard = self._run.ended
        if self._run.silent_since is not None:
            heard = min(max(self._run.silent_since, self._last), self._run.ended)
        self._end_pauses(heard)
        for each in (*self._calls.values(), *self._waits.values()):
            self._spans.append(each.closed(heard, "unfinished"))
        self._spans.append(self._phase.closed(heard))
        if heard < self._run.ended:
            silence = span_id(self._run.id, "no heartbeat")
            self._spans.append(TraceSpan("no heartbeat", silence, self._run.span_id, heard, self._run.ended))
        return self._spans

    def _see(self, step: TracedStep, within_call: _Open | None) -> None:
        seen = _SEEN.get(type(step.body))
        if seen is not None:
            seen(self, step, within_call or self._phase)

    # --- phases ----------------------------------------------------------------------

    def _entered(self, step: TracedStep, _: _Open) -> None:
        self._enter(step, step.body.name[:LONGEST], {"dronefleet.phase.detail": step.body.detail[:LONGEST] or None})

    def _enter(self, step: TracedStep, name: str, attributes: dict[str, Any] | None = None, error: str = "") -> None:
        self._spans.append(self._phase.closed(step.at, error))
        id_ = span_id(self._run.id, "phase", step.seq)
        self._phase = _Open(name, id_, self._run.span_id, step.at, attributes or {})

    def _verified(self, step: TracedStep, parent: _Open) -> None:
        """The end of the phase in which the command ran; the checks of the fleet itself have no phase."""
        body = step.body
        about = {
            "dronefleet.verify.attempt": body.attempt,
            "dronefleet.verify.passed": body.passed,
            "dronefleet.return_code": body.return_code,
        }
        error = "" if body.passed else "verification_failed"
        if self._phase.name != _VERIFYING:
            self._add(step, parent, "verify", body.duration_ms, attributes=about, error=error)
            return
        self._phase.attributes |= about
        self._enter(step, "working", error=error)

    def _was_delivered(self, step: TracedStep, _: _Open) -> None:
        body = step.body
        self._phase.attributes |= {
            "dronefleet.delivery.branch": body.branch,
            "dronefleet.delivery.head_commit": body.head_commit,
            "dronefleet.delivery.pushed": body.pushed,
            "dronefleet.delivery.files_changed": body.files_changed,
            "dronefleet.delivery.patch_bytes": body.patch_bytes,
        }
        self._enter(step, "ending", error="push_failed" if body.push_error else "")

    # --- the model -------------------------------------------------------------------

    def _model_answered(self, step: TracedStep, parent: _Open) -> None:
        body = step.body
        more: Attributes = {"gen_ai.response.finish_reasons": [body.finish_reason] if body.finish_reason else None}
        self._chat(step, parent, body.duration_ms, _KnownCall(body.model, body.usage, more=more))

    def _reviewed(self, step: TracedStep, parent: _Open) -> None:
        body = step.body
        if not body.repeated and body.model:
            more: Attributes = {"dronefleet.chat.purpose": "review", "dronefleet.review.findings": len(body.findings)}
            call = _KnownCall(body.model, body.usage, "no_review" if body.problem else "", more)
            self._chat(step, parent, body.duration_ms, call)

    def _charged(self, step: TracedStep, parent: _Open) -> None:
        """A call whose duration nothing tells: it is what the loop did since its last event."""
        body = step.body
        if body.about != "service":
            summary = body.about == "summary"
            more: Attributes = {"dronefleet.chat.purpose": "summary" if summary else None}
            call = _KnownCall(body.model, body.usage, "" if summary else "broken_off", more)
            self._chat(step, parent, self._since_mark(step), call)

    def _retried(self, step: TracedStep, parent: _Open) -> None:
        body, id_ = step.body, span_id(self._run.id, "retry", step.seq)
        if not self._broken_off:
            self._chat(step, parent, self._since_mark(step), _KnownCall(error=body.error_class[:LONGEST]))
        attributes = {"dronefleet.retry.attempt": body.attempt, "dronefleet.retry.after": body.error_class[:LONGEST]}
        until = step.at + timedelta(seconds=min(max(0.0, body.delay_s), _DAY_S))
        self._pauses.append((_Open("retry pause", id_, parent.id, step.at, attributes), until))

    def _end_pauses(self, at: datetime) -> None:
        for pause, until in self._pauses:
            self._spans.append(pause.closed(min(until, at)))
            self._mark = max(self._mark, min(until, at))
        self._pauses.clear()

    def _failed(self, step: TracedStep, parent: _Open) -> None:
        """The model's last answer did not come either; other errors are no calls."""
        if step.body.code == _MODEL_FAILED and not self._broken_off:
            self._chat(step, parent, self._since_mark(step), _KnownCall(error="model_error"))

    def _chat(self, step: TracedStep, parent: _Open, ms: float, call: _KnownCall) -> None:
        model = call.model or self._run.model
        attributes = {**chat_attributes(model, self._run.session_id, call.usage), **call.more}
        self._add(step, parent, chat_name(model), ms, attributes=attributes, error=call.error, client=True)

    # --- calls of tools, and waits ---------------------------------------------------

    def _called(self, step: TracedStep, parent: _Open) -> None:
        body = step.body
        tool = body.tool[:LONGEST]
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": body.call_id[:LONGEST],
            "gen_ai.tool.type": "function",
        }
        id_ = span_id(self._run.id, "call", step.seq, body.call_id)
        self._calls[body.call_id] = _Open(f"execute_tool {tool}", id_, parent.id, step.at, attributes)

    def _returned(self, step: TracedStep, parent: _Open) -> None:
        body, call = step.body, self._calls.pop(step.body.call_id, None)
        self._answered = step.at
        if call is None:
            return
        measured = timedelta(milliseconds=body.duration_ms)
        call.began = within(min(call.began, step.at - measured), step.at, parent.began, step.at)[0]
        # Results are recorded in the order of the calls: one of several at a time may have been complete before.
        ended = min(step.at, call.began + measured) if body.duration_ms else step.at
        call.attributes |= {
            "dronefleet.return_code": body.return_code,
            "dronefleet.tool.output_bytes": body.output_bytes,
            "dronefleet.tool.execution": body.execution,
        }
        ended_badly = body.execution in {"timed_out", "broken_off", "held_back"}
        self._spans.append(call.closed(ended, body.execution if ended_badly else "tool_error" if body.is_error else ""))

    def _child_did(self, step: TracedStep, _: _Open) -> None:
        """A step of a child agent, within the call that started it."""
        call = self._calls.get(step.body.call_id)
        self._see(TracedStep(step.seq, step.at, body_of(step.body.step)), call)

    def _asked(self, step: TracedStep, parent: _Open) -> None:
        body = step.body
        parent = self._calls.get(body.call_id, parent)
        id_ = span_id(self._run.id, "wait", step.seq)
        about = {"dronefleet.wait.kind": body.about}
        self._waits[body.call_id] = _Open("wait for user", id_, parent.id, step.at, about)

    def _decided(self, step: TracedStep, _: _Open) -> None:
        body, wait = step.body, self._waits.pop(step.body.call_id, None)
        if wait is not None:
            wait.attributes |= {"dronefleet.wait.approved": body.approved, "dronefleet.wait.decided_by": body.by}
            self._spans.append(wait.closed(step.at))

    # --- the rest --------------------------------------------------------------------

    def _compacted(self, step: TracedStep, parent: _Open) -> None:
        body = step.body
        about = {
            "dronefleet.compaction.cause": body.cause,
            "dronefleet.compaction.tokens_before": body.tokens_before,
            "dronefleet.compaction.tokens_after": body.tokens_after,
        }
        self._add(step, parent, "compaction", self._since_mark(step), attributes=about)

    def _checkpointed(self, step: TracedStep, parent: _Open) -> None:
        """Taken after the calls of a message, beside the next question to the model."""
        if step.body.changed:
            about = {"dronefleet.checkpoint.bytes": step.body.bundle_bytes}
            ms = (step.at - self._answered) / timedelta(milliseconds=1)
            self._add(step, parent, "checkpoint", ms, attributes=about)

    def _since_mark(self, step: TracedStep) -> float:
        return (step.at - self._mark) / timedelta(milliseconds=1)

    def _add(  # noqa: PLR0913 - a span
        self,
        step: TracedStep,
        parent: _Open,
        name: str,
        ms: float,
        *,
        attributes: Attributes,
        error: str = "",
        client: bool = False,
    ) -> None:
        """A span that ends with this event and lasted for `ms`, as far as its parent reaches."""
        began, ended = within(step.at - timedelta(milliseconds=ms), step.at, parent.began, step.at)
        id_ = span_id(self._run.id, "step", step.seq)
        self._spans.append(
            TraceSpan(name, id_, parent.id, began, ended, attributes, error, kind="client" if client else "internal")
        )


_SEEN: Mapping[type[Any], Callable[[RunSpans, TracedStep, _Open], None]] = {
    Phase: RunSpans._entered,
    VerifyStep: RunSpans._verified,
    Delivered: RunSpans._was_delivered,
    AssistantStep: RunSpans._model_answered,
    ReviewerStep: RunSpans._reviewed,
    ChargeStep: RunSpans._charged,
    RetryStep: RunSpans._retried,
    ErrorStep: RunSpans._failed,
    ToolCallStep: RunSpans._called,
    ToolResultStep: RunSpans._returned,
    ChildStep: RunSpans._child_did,
    ApprovalStep: RunSpans._asked,
    DecisionStep: RunSpans._decided,
    CompactionStep: RunSpans._compacted,
    CheckpointStep: RunSpans._checkpointed,
}
KINDS = tuple(str(each.model_fields["kind"].default) for each in _SEEN)
"""The kinds of events that are read for a trace."""


def chat_name(model: str) -> str:
    """The name of the span of a call, which the conventions give."""
    return f"chat {_requested(model)}"


def chat_attributes(model: str, session_id: str, usage: Usage) -> dict[str, AttributeValue | None]:
    """`model` as LiteLLM names it: its provider and, after a slash, the name that the provider knows."""
    provider, slash, _ = model.partition("/")
    return {
        "gen_ai.operation.name": "chat",
        # Without a prefix, LiteLLM finds the provider by its own list.
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider)[:_LONGEST] if slash else "litellm",
        "gen_ai.request.model": _requested(model),
        "gen_ai.conversation.id": session_id,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.thinking_tokens or None,
        "dronefleet.cost_usd": usage.cost_usd,
    }


def _requested(model: str) -> str:
    return (model.partition("/")[2] or model)[:_LONGEST]
