"""Trajectories: the steps of a run as one document in mini-swe-agent's format, for its tools and for `drone replay`.

The format (M-050, M-051) is `info`, `messages` and `trajectory_format`; a message is in wire format, with additional
information in `extra`. Fields that only this project has are in `info.dronefleet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.events import (
    AssistantStep,
    Body,
    ChargeStep,
    ChildStep,
    CompactionStep,
    Execution,
    Prepared,
    ReasoningStep,
    ReviewerStep,
    RunEnded,
    RunStarted,
    ToolResultStep,
    Usage,
    UserStep,
)
from shared.messages import ToolCall
from shared.outcome import ExitStatus
from shared.transcripts import summary_message

FORMAT = "mini-swe-agent-1.1"
NOT_EXECUTED = "action was not executed"
"""The `exception_info` of a call that was not run, in that format's wording."""
SUBMITTED = "Submitted"
_EXIT_STATUS = {
    ExitStatus.SUBMITTED: SUBMITTED,
    ExitStatus.STOPPED: SUBMITTED,
    ExitStatus.MAX_ITERATIONS: "LimitsExceeded",
    ExitStatus.COST_LIMIT: "LimitsExceeded",
    ExitStatus.TOKEN_LIMIT: "LimitsExceeded",
    ExitStatus.TIME_LIMIT: "TimeExceeded",
    ExitStatus.FORMAT_ERRORS: "RepeatedFormatError",
}
"""Translated to that format (M-005); other statuses keep our value, in place of an exception's class name."""
Doc = dict[str, Any]


@dataclass(frozen=True)
class RunFacts:
    """Facts about a run besides its steps."""

    order_id: str
    run_id: str
    model: str
    mode: str
    limits: Mapping[str, Any]
    """`shared.work_order.Limits` as a document."""
    version: str
    """Of this software."""


def trajectory(facts: RunFacts, steps: Iterable[tuple[datetime, Body]]) -> Doc:
    """Build the document of one run in one pass over its steps; for a run that has not ended, it covers those so far.

    The system prompt is not among the steps, so it is not in the document. Unknown values are null.
    """
    builder = _TrajectoryBuilder()
    for at, body in steps:
        builder.add(at.timestamp(), body)
    return {"info": _info(facts, builder), "messages": builder.finished(), "trajectory_format": FORMAT}


@dataclass
class _TrajectoryBuilder:
    """The trajectory as built so far."""

    messages: list[Doc] = field(default_factory=list)
    started: RunStarted | None = None
    prepared: Prepared | None = None
    ended: RunEnded | None = None
    ended_at: float = 0.0
    workspace: str = ""
    answers: int = 0
    cost: float | None = 0.0
    cost_before: float | None = 0.0
    """Cost of the runs that the last one resumed."""
    _thought: ReasoningStep | None = None
    _calls: dict[str, ToolCall] = field(default_factory=dict)

    def add(self, at: float, body: Body) -> None:
        match body:
            case RunStarted():
                # If this run resumes another's checkpoint, the earlier steps count towards the cost, too.
                self.started, self.cost_before = body, self.cost
            case Prepared():
                self.prepared, self.workspace = body, body.workspace
            case RunEnded():
                self.ended, self.ended_at = body, at
            case ChargeStep() | ReviewerStep() | ChildStep():
                self._charge(body.usage)
            case _:
                self._add_message(at, body)

    def finished(self) -> list[Doc]:
        """Return the messages, including the one that says how the run ended."""
        if self.ended is None:
            return self.messages
        extra = {"exit_status": exit_status(self.ended), "submission": self.ended.response, "timestamp": self.ended_at}
        return [*self.messages, {"role": "exit", "content": self.ended.response, "extra": extra}]

    def _add_message(self, at: float, body: Body) -> None:
        match body:
            case ReasoningStep():
                self._thought = body
            case AssistantStep():
                self.messages.append(self._answer(at, body))
            case ToolResultStep():
                self.messages.append(self._observation(at, body))
            case UserStep():
                self.messages.append(_said(at, body.text, body.source))
            case CompactionStep():
                # The replaced messages are all here: this one marks where the model no longer saw them.
                self.messages.append(_said(at, summary_message(body.summary).content, "compaction"))
            case _:
                pass

    def _answer(self, at: float, body: AssistantStep) -> Doc:
        self.answers += 1
        self._charge(body.usage)
        self._calls = {call.id: call for call in body.tool_calls}
        thought, self._thought = self._thought, None
        message: Doc = {"role": "assistant", "content": body.text}
        if thought:
            message["reasoning_content"] = thought.text
        if body.tool_calls:
            message["tool_calls"] = [_native(call) for call in body.tool_calls]
        message["extra"] = {
            "actions": list(_actions(body.tool_calls)),
            "response": None,
            "cost": body.usage.cost_usd,
            "timestamp": at,
            "model": body.model,
            "finish_reason": body.finish_reason,
            "usage": body.usage.model_dump(exclude={"cost_usd"}),
        }
        return message

    def _charge(self, usage: Usage | None) -> None:
        """Add what a step cost; None: it is not paid for."""
        if usage is not None:
            self.cost = _sum(self.cost, usage.cost_usd)

    def _observation(self, at: float, body: ToolResultStep) -> Doc:
        why_ended = _why_ended(body.execution, body.note)
        # A command submits only with return code 0, and the tool `submit` has none.
        code = 0 if body.execution == "submitted" else body.return_code
        extra = {
            "raw_output": body.output.removesuffix(body.note),
            "returncode": -1 if why_ended else code,
            "timestamp": at,
            "exception_info": why_ended,
            "execution": body.execution,
            "duration_ms": body.duration_ms,
            "log_sha256": body.log_sha256,
        }
        return {"role": "tool", "tool_call_id": body.call_id, "content": body.output, "extra": extra}


def _why_ended(execution: Execution, note: str) -> str:
    """The `exception_info` of a call; empty if it ended normally."""
    match execution:
        case "held_back":
            return NOT_EXECUTED
        case "timed_out" | "broken_off":
            return note.partition("\n")[0].strip("()")
        case _:
            return ""


def exit_status(ended: RunEnded) -> str:
    """How a run ended, in the format's wording if it has one."""
    known = {status.value: word for status, word in _EXIT_STATUS.items()}
    return known.get(ended.exit_status, ended.exit_status)


def _info(facts: RunFacts, builder: _TrajectoryBuilder) -> Doc:
    ended = builder.ended
    cost = _sum(builder.cost_before, ended.stats.cost_usd) if ended else builder.cost
    return {
        "model_stats": {"instance_cost": cost, "api_calls": builder.answers},
        "config": _config(facts, builder),
        "mini_version": f"dronefleet {facts.version}",
        "exit_status": exit_status(ended) if ended else "",
        "submission": ended.response if ended else "",
        "dronefleet": {
            "order": facts.order_id,
            "run": facts.run_id,
            "status": ended.status if ended else "running",
            "exit_status": ended.exit_status if ended else None,
            "reason": ended.reason if ended else None,
            "base_commit": builder.prepared.base_commit if builder.prepared else None,
            "cost": "known" if cost is not None else "unknown: at least one answer has no known price",
        },
    }


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _config(facts: RunFacts, builder: _TrajectoryBuilder) -> Doc:
    limits = facts.limits
    return {
        "agent": {
            "step_limit": limits.get("max_iterations", 0),
            "cost_limit": limits.get("cost_limit", 0.0),
            "wall_time_limit_seconds": limits.get("max_run_seconds", 0),
            "mode": facts.mode,
        },
        "agent_type": "dronefleet",
        "model": {"model_name": facts.model},
        "model_type": "dronefleet",
        "environment": {"cwd": builder.workspace, "env": {}, "timeout": limits.get("command_timeout", 0)},
        "environment_type": f"dronefleet.{builder.started.sandbox if builder.started else 'unknown'}",
    }


def _said(at: float, text: str, source: str) -> Doc:
    return {"role": "user", "content": text, "extra": {"timestamp": at, "source": source}}


def _native(call: ToolCall) -> Doc:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _actions(calls: Iterable[ToolCall]) -> Iterator[Doc]:
    """Commands in that format's form; calls of other tools appear only as native calls."""
    for call in calls:
        if call.name == "shell" and (command := command_in(call.arguments)) is not None:
            yield {"command": command, "tool_call_id": call.id}


def command_in(arguments: str) -> str | None:
    """The command in a shell call's arguments; None if there is none."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    command = given.get("command") if isinstance(given, dict) else None
    return command if isinstance(command, str) else None
