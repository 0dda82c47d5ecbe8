"""The events of a run as terminal lines, one function per kind: for orders of the fleet and for `drone run`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from shared.durations import duration_label
from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    CheckpointStep,
    ChildStep,
    CommentStep,
    CompactionStep,
    DecisionStep,
    ErrorStep,
    GapStep,
    GuardrailStep,
    Phase,
    ReasoningStep,
    RetryStep,
    TodoItem,
    TodoStep,
    ToolCallStep,
    ToolResultStep,
    UserStep,
    VerifyStep,
)
from shared.terminal.output import Style, printable

Lines = list[tuple[str, Style | None]]
LINE, VALUE = 160, 60
"""Characters of a call on one line, and of one of its arguments."""
OUTPUT_LINES = 12
"""Lines of a tool's result; `fleet show ORDER --json` and `drone run --json` contain all of it."""
CHILD_LINES = 3
"""Lines of one step of a child agent: its findings are also the result of its parent's call."""
_MARKS = {"pending": "☐", "in_progress": "▶", "done": "☑"}


def event_lines(body: Body, *, streamed: bool = False) -> Lines:
    """The lines that show an event, each with its style; none for events that are not shown to people.

    `streamed`: its text is already on the screen. Control characters are removed.
    """
    show = _SHOWN.get(type(body))
    return show(body, streamed) if show else []


def parsed_body(document: object) -> Body | None:
    """The event body in a JSON document; None if its kind is from a newer version, or if it is damaged."""
    try:
        return _adapter().validate_python(document)
    except ValidationError:
        return None


def todo_lines(items: Iterable[TodoItem]) -> list[str]:
    """The model's to-do list."""
    return [f"  {_MARKS[item.status]} {one_line(item.text)}" for item in items]


def one_line(text: str) -> str:
    """Untrusted text as one line without control characters, limited in length."""
    return _joined(printable(text), LINE)


@cache
def _adapter() -> TypeAdapter[Body]:
    return TypeAdapter(Body)


def _assistant(body: AssistantStep, streamed: bool) -> Lines:
    return [] if streamed or not body.text else [(printable(body.text), None)]


def _reasoning(body: ReasoningStep, streamed: bool) -> Lines:
    return [] if streamed else [(printable(body.text), "dim")]


def _user(body: UserStep, _streamed: bool) -> Lines:
    return [] if body.source == "prompt" else [(f"» {printable(body.text)}", "yellow")]


def _comment(body: CommentStep, _streamed: bool) -> Lines:
    return [(printable(body.text), None)]


def _tool_call(body: ToolCallStep, _streamed: bool) -> Lines:
    return [(f"→ {printable(body.tool)} {_arguments(body)}", "cyan")]


def _tool_result(body: ToolResultStep, streamed: bool) -> Lines:
    """How the call ended, then its output. If the output was streamed, only the fleet's note is shown."""
    code = "" if body.return_code is None else f"exit {body.return_code}"
    how = ", ".join(filter(None, ("error" if body.is_error else "", code, duration_label(body.duration_ms))))
    lines = printable(body.note if streamed else body.output).rstrip("\n").splitlines()
    shown = lines[:OUTPUT_LINES]
    if len(lines) > OUTPUT_LINES:
        shown.append(_more(len(lines) - OUTPUT_LINES))
    failed = body.is_error or body.return_code not in {0, None}
    return [(f"← {how}", "red" if failed else "green"), *((f"  {line}", "dim") for line in shown)]


def _retry(body: RetryStep, _streamed: bool) -> Lines:
    delay = duration_label(round(body.delay_s * 1000))
    return [(f"! {one_line(f'model call failed ({body.error_class}: {body.error})')}; retrying in {delay}", "yellow")]


def _error(body: ErrorStep, _streamed: bool) -> Lines:
    lines: Lines = [(f"error: {printable(body.what)}", "red")]
    if body.detail:
        lines.append((f"  {one_line(body.detail)}", "dim"))
    return lines


def _phase(body: Phase, _streamed: bool) -> Lines:
    return [(f"· {body.name}{': ' if body.detail else ''}{printable(body.detail)}", "dim")]


def _gap(body: GapStep, _streamed: bool) -> Lines:
    return [(f"{body.missing} events missing: {printable(body.why)}", "red")]


def _checkpoint(body: CheckpointStep, _streamed: bool) -> Lines:
    """Only a checkpoint with a change is shown."""
    if not body.changed or not body.commit:
        return []
    lines: Lines = [(f"· checkpoint {printable(body.commit[:12])}", "dim")]
    if body.left_out:
        lines.append((one_line(f"  not included: {'; '.join(body.left_out)}"), "yellow"))
    return lines


def _guardrail(body: GuardrailStep, _streamed: bool) -> Lines:
    did = {"warn": "warned about a call", "block": "blocked a call", "halt": "stopped the run"}[body.action]
    text = f"! guardrail {body.guardrail} {did}: {body.reason}"
    return [(one_line(text), "yellow" if body.action == "warn" else "red")]


def _approval(body: ApprovalStep, _streamed: bool) -> Lines:
    return [(one_line(f"? approval required for {body.tool}: {body.why}"), "yellow")]


def _decision(body: DecisionStep, _streamed: bool) -> Lines:
    by = {"clock": ": no answer before the deadline", "interruption": ": the call was interrupted"}.get(body.by, "")
    comment = f" ({body.comment})" if body.comment and body.by == "person" else ""
    word = "✓ approved" if body.approved else "✗ denied"
    return [(one_line(f"{word}{by}{comment}"), "green" if body.approved else "red")]


def _todo(body: TodoStep, _streamed: bool) -> Lines:
    return [(line, "cyan") for line in todo_lines(body.items)]


def _verify(body: VerifyStep, _streamed: bool) -> Lines:
    how = "passed" if body.passed else f"failed with exit code {body.return_code}"
    head = one_line(f"{'✓' if body.passed else '✗'} verify, attempt {body.attempt}: {body.command} {how}")
    # The cause of a failure is at the end of a test run's output.
    lines = printable(body.output).rstrip("\n").splitlines()[-(1 if body.passed else OUTPUT_LINES) :]
    colour: Style = "green" if body.passed else "red"
    return [(head, colour), *((f"  {line}", "dim") for line in lines)]


def _compaction(body: CompactionStep, _streamed: bool) -> Lines:
    why = {"overflow": "too long for the model", "asked": "on request", "window": "context window nearly full"}
    tokens = f"{body.tokens_before:,} → {body.tokens_after:,} tokens"
    files = [("read", body.files_read), ("changed", body.files_changed)]
    named = [one_line(f"  {what}: {', '.join(names)}") for what, names in files if names]
    return [(line, "dim") for line in (f"· conversation compacted ({why[body.cause]}): {tokens}", *named)]


def _child(body: ChildStep, _streamed: bool) -> Lines:
    # A child's step is stored as its drone sent it, and its text was not streamed.
    inner = parsed_body(body.step)
    lines = event_lines(inner) if inner is not None else []
    shown = [one_line(part) for text, _ in lines for part in text.splitlines()]
    rest = [_more(len(shown) - CHILD_LINES)] if len(shown) > CHILD_LINES else []
    return [(f"  ┆ {line}", "dim") for line in [*shown[:CHILD_LINES], *rest]]


_SHOWN: dict[type[Any], Callable[[Any, bool], Lines]] = {
    AssistantStep: _assistant,
    ReasoningStep: _reasoning,
    UserStep: _user,
    CommentStep: _comment,
    ToolCallStep: _tool_call,
    ToolResultStep: _tool_result,
    RetryStep: _retry,
    ErrorStep: _error,
    Phase: _phase,
    GapStep: _gap,
    CheckpointStep: _checkpoint,
    GuardrailStep: _guardrail,
    ApprovalStep: _approval,
    DecisionStep: _decision,
    TodoStep: _todo,
    VerifyStep: _verify,
    CompactionStep: _compaction,
    ChildStep: _child,
}


def _more(count: int) -> str:
    return f"… {count} more {'line' if count == 1 else 'lines'}"


def _arguments(body: ToolCallStep) -> str:
    """The arguments of a call on one line: a command unchanged, others as name=value, long texts cut."""
    arguments = body.arguments
    if isinstance(arguments, dict) and body.tool == "shell":
        text = str(arguments.get("command", ""))
    elif isinstance(arguments, dict):
        text = "  ".join(f"{name}={_short(value)}" for name, value in arguments.items())
    else:
        text = str(arguments)
    return one_line(text)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _joined(text, VALUE)


def _joined(text: str, length: int) -> str:
    line = " ⏎ ".join(text.splitlines())
    return line if len(line) <= length else f"{line[: length - 1]}…"
