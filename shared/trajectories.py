"""Trajectories: the steps of a run as one document in mini-swe-agent's format, for its tools and for `drone replay`.

The format (M-050, M-051) is `info`, `messages` and `trajectory_format`; a message is what went over the wire, with all
that is known besides in `extra`. What this project has and that format does not is in `info.dronefleet`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.events import (
    AssistantStep,
    Body,
    CompactionStep,
    DecisionStep,
    GuardrailStep,
    Prepared,
    ReasoningStep,
    RunEnded,
    RunStarted,
    ToolResultStep,
    UserStep,
)
from shared.messages import ToolCall
from shared.outcome import ExitStatus
from shared.transcripts import BROKEN_OFF, NOT_RUN, summary_message

FORMAT = "mini-swe-agent-1.1"
NOT_EXECUTED = "action was not executed"
"""The `exception_info` of a call that was not run, in that format's own words."""
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
"""In that format's words (M-005); the others keep ours, as an exception's class name would stand there."""
_HELD_BACK = (NOT_RUN, BROKEN_OFF, "This call was blocked", "This call was not approved")
_HOW_IT_ENDED = re.compile(r"\((return code (-?\d+)|ended [^\n]*)\)(\n\n\[.*\])?\Z", re.DOTALL)
_WORKSPACE = re.compile(r"^Workspace: (/.+)$", re.MULTILINE)
Doc = dict[str, Any]


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run beside its steps."""

    order_id: str
    run_id: str
    model: str
    mode: str
    limits: Mapping[str, Any]
    """`shared.work_order.Limits` as a document."""
    version: str
    """Of this software."""


def trajectory(facts: RunFacts, steps: Iterable[tuple[datetime, Body]]) -> Doc:
    """The document of one run, in one pass over its steps. A run that has not ended gives what there is so far.

    The system prompt is not among the steps, and so not in the document. What is unknown is null.
    """
    told = _Told()
    for at, body in steps:
        told.add(at.timestamp(), body)
    return {"info": _info(facts, told), "messages": told.finished(), "trajectory_format": FORMAT}


def output_of_shell(shown: str) -> tuple[str, str]:
    """Take off what the shell tool adds for the model: the output itself, and why it was ended by us, if it was.

    An output without an end of line has got one: the line that is taken off had to begin somewhere.
    """
    match = _HOW_IT_ENDED.search(shown)
    if match is None:
        return shown, ""
    return shown[: match.start()], "" if match[2] is not None else match[1]


@dataclass
class _Told:
    """The run as far as it has been told."""

    messages: list[Doc] = field(default_factory=list)
    started: RunStarted | None = None
    prepared: Prepared | None = None
    ended: RunEnded | None = None
    ended_at: float = 0.0
    workspace: str = ""
    answers: int = 0
    cost: float | None = 0.0
    cost_before: float | None = 0.0
    """Of the runs that the last one went on from."""
    _thought: ReasoningStep | None = None
    _calls: dict[str, ToolCall] = field(default_factory=dict)
    _held_back: set[str] = field(default_factory=set)

    def add(self, at: float, body: Body) -> None:
        match body:
            case RunStarted():
                # A run that went on from another's checkpoint: what came before it cost something too.
                self.started, self.cost_before = body, self.cost
            case Prepared():
                self.prepared = body
            case RunEnded():
                self.ended, self.ended_at = body, at
            case GuardrailStep(action="block" | "halt") | DecisionStep(approved=False):
                self._held_back.add(body.call_id)
            case _:
                self._add_message(at, body)

    def finished(self) -> list[Doc]:
        """The messages, with the one that says how the run ended."""
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
                if body.source == "prompt" and (found := _WORKSPACE.search(body.text)):
                    self.workspace = found[1]
                self.messages.append(_said(at, body.text, body.source))
            case CompactionStep():
                # The messages that it stands for are all here: this one says where the model saw them no more.
                self.messages.append(_said(at, summary_message(body.summary).content, "compaction"))
            case _:
                pass

    def _answer(self, at: float, body: AssistantStep) -> Doc:
        self.answers += 1
        self.cost = None if self.cost is None or body.usage.cost_usd is None else self.cost + body.usage.cost_usd
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

    def _observation(self, at: float, body: ToolResultStep) -> Doc:
        call = self._calls.get(body.call_id)
        is_shell = call is not None and call.name == "shell"
        output, why_ended = output_of_shell(body.output) if is_shell else (body.output, "")
        code = body.return_code
        if body.call_id in self._held_back or body.output.startswith(_HELD_BACK):
            output, why_ended = "", NOT_EXECUTED
        elif is_shell and code is None and not why_ended:
            # A submission, whose text is in the exit message, or a call that was refused before it was run.
            why_ended = NOT_EXECUTED if body.output == "Submitted." else ""
        extra = {
            "raw_output": output,
            "returncode": -1 if why_ended else code,
            "timestamp": at,
            "exception_info": why_ended,
            "duration_ms": body.duration_ms,
            "log_sha256": body.log_sha256,
        }
        return {"role": "tool", "tool_call_id": body.call_id, "content": body.output, "extra": extra}


def exit_status(ended: RunEnded) -> str:
    """How a run ended, in the format's words where it has one."""
    known = {status.value: word for status, word in _EXIT_STATUS.items()}
    return known.get(ended.exit_status, ended.exit_status)


def _info(facts: RunFacts, told: _Told) -> Doc:
    ended = told.ended
    cost = _sum(told.cost_before, ended.stats.cost_usd) if ended else told.cost
    return {
        "model_stats": {"instance_cost": cost, "api_calls": told.answers},
        "config": _config(facts, told),
        "mini_version": f"dronefleet {facts.version}",
        "exit_status": exit_status(ended) if ended else "",
        "submission": ended.response if ended else "",
        "dronefleet": {
            "order": facts.order_id,
            "run": facts.run_id,
            "status": ended.status if ended else "running",
            "exit_status": ended.exit_status if ended else None,
            "reason": ended.reason if ended else None,
            "base_commit": told.prepared.base_commit if told.prepared else None,
            "cost": "known" if cost is not None else "unknown: the price of at least one answer is not known",
        },
    }


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _config(facts: RunFacts, told: _Told) -> Doc:
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
        "environment": {"cwd": told.workspace, "env": {}, "timeout": limits.get("command_timeout", 0)},
        "environment_type": f"dronefleet.{told.started.sandbox if told.started else 'unknown'}",
    }


def _said(at: float, text: str, source: str) -> Doc:
    return {"role": "user", "content": text, "extra": {"timestamp": at, "source": source}}


def _native(call: ToolCall) -> Doc:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _actions(calls: Iterable[ToolCall]) -> Iterator[Doc]:
    """Commands as that format has them; calls of other tools are native alone."""
    for call in calls:
        if call.name == "shell" and (command := command_in(call.arguments)) is not None:
            yield {"command": command, "tool_call_id": call.id}


def command_in(arguments: str) -> str | None:
    """The command in a shell call's arguments; None where there is none."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    command = given.get("command") if isinstance(given, dict) else None
    return command if isinstance(command, str) else None
