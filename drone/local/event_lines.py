"""Events of a run as lines for the person at the terminal, one function per kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter

from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    ChildStep,
    CompactionStep,
    DecisionStep,
    ErrorStep,
    GuardrailStep,
    Phase,
    RetryStep,
    RunEnded,
    TodoStep,
    ToolCallStep,
    ToolResultStep,
    VerifyStep,
)
from shared.terminal.output import Style

MAX_LINES = 12
"""Of a tool's result; the model was shown more, and `--json` has it all."""
MAX_WIDTH = 200
CHILD_LINES = 3
"""Of one step of a child agent."""

_BODY: TypeAdapter[Body] = TypeAdapter(Body)
Lines = list[tuple[str, Style | None]]


def lines_of(body: Body) -> Lines | None:
    """The lines that show an event, each with its style; None for what people need not see.

    No line at all, an empty list, still ends what is in flight: the event holds the whole of it.
    """
    show = _SHOWN.get(type(body))
    return show(body) if show else None


def _phase(body: Phase) -> Lines:
    return [(f"· {body.name}{': ' if body.detail else ''}{body.detail}", "dim")]


def _assistant(_body: AssistantStep) -> Lines:
    # Its text was streamed already; this only ends the line that was in flight.
    return []


def _call(body: ToolCallStep) -> Lines:
    arguments = body.arguments if isinstance(body.arguments, str) else json.dumps(body.arguments, ensure_ascii=False)
    return [(f"→ {body.tool} {_cut(arguments)}", "cyan")]


def _result(body: ToolResultStep) -> Lines:
    error = "error, " if body.is_error else ""
    code = "" if body.return_code is None else f"exit {body.return_code}, "
    lines = body.output.rstrip("\n").splitlines()
    shown: Lines = [(f"  {_cut(line)}", "dim") for line in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        shown.append((f"  … {len(lines) - MAX_LINES} more lines", "dim"))
    return [(f"← {error}{code}{body.duration_ms} ms", "red" if body.is_error else "green"), *shown]


def _retry(body: RetryStep) -> Lines:
    return [(f"! {body.error_class}: {_cut(body.error)}; again in {body.delay_s:.1f} s", "yellow")]


def _error(body: ErrorStep) -> Lines:
    return [(f"! {body.what}", "red"), *([(f"  {_cut(body.detail)}", None)] if body.detail else [])]


def _ended(body: RunEnded) -> Lines:
    cost = "cost unknown" if body.stats.cost_usd is None else f"{body.stats.cost_usd:.4f} USD"
    tokens = f"{body.stats.input_tokens} + {body.stats.output_tokens} tokens"
    style: Style = "green" if body.status == "success" else "red"
    return [(f"{body.status}: {body.reason}", style), (f"  {body.stats.tool_calls} calls, {tokens}, {cost}", "dim")]


def _guardrail(body: GuardrailStep) -> Lines:
    did = {"warn": "warned of", "block": "blocked", "halt": "ended the run at"}[body.action]
    return [(f"! guardrail {body.guardrail} {did} a call: {_cut(body.reason)}", "yellow")]


def _approval(body: ApprovalStep) -> Lines:
    return [(f"? {body.tool} waits for a person: {_cut(body.why)}", "yellow")]


def _decision(body: DecisionStep) -> Lines:
    by = {"clock": " by the clock", "interruption": ": it was broken off"}.get(body.by, "")
    return [(f"✓ approved{by}", "green") if body.approved else (f"✗ denied{by}", "red")]


def _todo(body: TodoStep) -> Lines:
    marks = {"pending": "☐", "in_progress": "▶", "done": "☑"}
    return [(f"  {marks[item.status]} {_cut(item.text)}", "cyan") for item in body.items]


def _verify(body: VerifyStep) -> Lines:
    how = "passed" if body.passed else f"failed with exit code {body.return_code}"
    # What went wrong stands at the end of what a test run prints.
    tail = [] if body.passed else body.output.rstrip("\n").splitlines()[-MAX_LINES:]
    head = f"{'✓' if body.passed else '✗'} verify, attempt {body.attempt}: {_cut(body.command)} {how}"
    return [(head, "green" if body.passed else "red"), *((f"  {_cut(line)}", "dim") for line in tail)]


def _compaction(body: CompactionStep) -> Lines:
    lines: Lines = [(f"· the conversation was compacted: {body.tokens_before:,} → {body.tokens_after:,} tokens", "dim")]
    named = (("read", body.files_read), ("changed", body.files_changed))
    return [*lines, *((f"  {what}: {_cut(', '.join(files))}", "dim") for what, files in named if files)]


def _child(body: ChildStep) -> Lines:
    inner = _BODY.validate_python(body.step)
    if isinstance(inner, AssistantStep):
        # A child's text is not streamed, as its parent's is.
        shown: Lines = [(line, None) for line in inner.text.splitlines()]
    else:
        shown = lines_of(inner) or []
    return [(f"  ┆ {_cut(text)}", "dim") for text, _ in shown[:CHILD_LINES]]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_WIDTH else f"{text[:MAX_WIDTH]}…"


_SHOWN: dict[type[Any], Callable[[Any], Lines]] = {
    Phase: _phase,
    AssistantStep: _assistant,
    ToolCallStep: _call,
    ToolResultStep: _result,
    RetryStep: _retry,
    ErrorStep: _error,
    GuardrailStep: _guardrail,
    ApprovalStep: _approval,
    DecisionStep: _decision,
    TodoStep: _todo,
    VerifyStep: _verify,
    CompactionStep: _compaction,
    ChildStep: _child,
    RunEnded: _ended,
}
