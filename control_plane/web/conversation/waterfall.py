"""The steps of an order over time: how long each took, with its tokens and its cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from control_plane.contract.documents.orders import StepDocument
from control_plane.web.conversation.calls import ShownCall
from control_plane.web.conversation.grouping import body_of
from control_plane.web.conversation.notes import note_of
from shared.events import (
    ApprovalStep,
    AssistantStep,
    CheckpointStep,
    DecisionStep,
    Phase,
    RetryStep,
    ReviewerStep,
    RunStarted,
    ToolCallStep,
    ToolResultStep,
    Usage,
    VerifyStep,
)

KINDS = (
    *("run_started", "phase", "assistant", "tool_call", "tool_result", "retry", "compaction", "checkpoint", "approval"),
    *("decision", "verify", "resumed", "error", "gap", "guardrail", "run_ended", "charge", "reviewer"),
)
WIDTH = 1000
"""Units of the whole time."""


@dataclass
class TimedStep:
    """A row of the waterfall."""

    seq: int
    kind: str
    """model, tool, wait, check, or event for what takes no time."""
    label: str
    began: datetime
    ended: datetime
    usage: Usage | None = None
    failed: bool = False
    undone: bool = False
    model: str = ""
    """The model that answered."""
    answer: bool = False
    """It is an answer of the agent's model, so what was sent for it can be shown."""
    raw: bool = False
    """The raw answer of the provider is kept."""
    start: int = 0
    length: int = 0
    """In parts of WIDTH."""

    @property
    def ms(self) -> int:
        return round((self.ended - self.began).total_seconds() * 1000)


def waterfall_of(steps: Sequence[StepDocument]) -> list[TimedStep]:
    """The rows, in order, each with its place in the time from the first to the last."""
    rows = list(_rows(steps))
    if not rows:
        return []
    if len({row.model for row in rows if row.model}) > 1:
        for row in rows:
            row.label += f" of {row.model}" if row.model else ""
    first, last = min(row.began for row in rows), max(row.ended for row in rows)
    whole = max((last - first).total_seconds(), 0.001)
    for row in rows:
        row.start = min(WIDTH - 2, int((row.began - first).total_seconds() / whole * WIDTH))
        row.length = max(2, int((row.ended - row.began).total_seconds() / whole * WIDTH))
    return rows


def _rows(steps: Sequence[StepDocument]) -> Iterator[TimedStep]:
    calls: dict[str, ShownCall] = {}
    asked: dict[str, datetime] = {}
    for step in steps:
        document = step.model_dump()
        body = body_of(document)
        match body:
            case ToolCallStep():
                calls[body.call_id] = ShownCall.of(step.seq, body)
            case ApprovalStep():
                asked[body.call_id] = step.at
            case ToolResultStep():
                yield _of_call(step, body, calls.pop(body.call_id, None))
            case DecisionStep() if body.call_id in asked:
                yield _waited(step, body, asked.pop(body.call_id))
            case _:
                yield from _timed(step, body, document)


def _of_call(step: StepDocument, body: ToolResultStep, call: ShownCall | None) -> TimedStep:
    label = f"{call.tool} {call.gist}" if call else "call"
    return _row(step, "tool", label, body.duration_ms, failed=bool(body.is_error or body.return_code))


def _waited(step: StepDocument, body: DecisionStep, since: datetime) -> TimedStep:
    row = _row(step, "wait", "Waited for a user", 0, failed=not body.approved)
    row.began = since
    return row


def _timed(step: StepDocument, body: Any, document: Mapping[str, Any]) -> Iterator[TimedStep]:
    match body:
        case AssistantStep():
            row = _row(step, "model", "Model call", body.duration_ms)
            row.usage, row.model, row.answer, row.raw = body.usage, body.model, True, body.raw_sha256 is not None
            yield row
        case RetryStep():
            row = _row(step, "wait", f"Retry {body.attempt}: {body.error_class.replace('_', ' ')}", 0, failed=True)
            row.ended += timedelta(seconds=body.delay_s)
            yield row
        case ReviewerStep():
            row = _row(step, "model", f"Review by {body.model}", body.duration_ms, failed=bool(body.problem))
            row.usage = body.usage
            yield row
        case VerifyStep():
            yield _row(step, "check", body.command, body.duration_ms, failed=not body.passed)
        case _ if label := _event(body, document):
            yield _row(step, "event", label, 0)


def _row(step: StepDocument, kind: str, label: str, ms: int, *, failed: bool = False) -> TimedStep:
    began = step.at - timedelta(milliseconds=ms)
    return TimedStep(step.seq, kind, label, began, step.at, failed=failed, undone=step.undone)


def _event(body: Any, document: Mapping[str, Any]) -> str:
    """What happened; empty for a step that only says that the one before it is over."""
    match body:
        case RunStarted():
            return f"Run started (sandbox {body.sandbox})"
        case Phase():
            return body.name.capitalize() + (f": {body.detail}" if body.detail else "")
        case CheckpointStep():
            left_out = (*body.left_out, *body.kept_on_disk)
            without = f"; not in it: {'; '.join(left_out)}" if left_out else ""
            return f"Checkpoint {body.commit[:12]}{without}" if body.commit and body.changed else ""
    note = note_of(body, document) if body is not None else None
    return str(note["text"]) if note else ""
