"""Steps as lines for people, one function per kind."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from shared.terminal.output import Style, paint, printable

Doc = dict[str, Any]
Lines = list[tuple[str, Style | None]]
LINE, VALUE = 160, 60
"""Characters of a call on one line, and of one of its arguments."""
OUTPUT_LINES = 12
"""Of a tool's result, on the screen; all of it is in `fleet show ORDER --json`."""
CHILD_LINES = 3
"""Of one step of a child agent: what it found out comes as the result of its parent's call."""
_MARKS = {"pending": "☐", "in_progress": "▶", "done": "☑"}


def step_lines(step: Doc, *, streamed: bool = False, order_id: str = "") -> list[str]:
    """The lines that show a step; none for what people need not see. `streamed`: its text is on the screen already.

    With `order_id`, a call that waits for a person comes with the commands that decide it.
    """
    show = _STEPS.get(step["kind"])
    lines = show(step, streamed) if show else []
    if step.get("undone") and lines:
        (first, _), *rest = lines
        lines = [(f"(undone) {first}", "dim"), *((text, "dim") for text, _ in rest)]
    if step["kind"] == "approval" and order_id:
        lines.append((f"  next  fleet approve {order_id}    or    fleet deny {order_id}", None))
    return [paint(text, style, sys.stdout) if style else text for text, style in lines]


def todo_lines(items: Iterable[Doc]) -> list[str]:
    """The model's list of what is left to do."""
    return [f"  {_MARKS.get(item['status'], '☐')} {_one_line(item['text'])}" for item in items]


def _assistant(step: Doc, streamed: bool) -> Lines:
    return [] if streamed or not step["text"] else [(printable(step["text"]), None)]


def _reasoning(step: Doc, streamed: bool) -> Lines:
    return [] if streamed else [(printable(step["text"]), "dim")]


def _tool_call(step: Doc, _streamed: bool) -> Lines:
    return [(f"→ {printable(step['tool'])} {_arguments(step)}", "cyan")]


def _tool_result(step: Doc, streamed: bool) -> Lines:
    lines = printable(step["output"]).rstrip("\n").splitlines()
    if streamed:
        # A command's output was on the screen as it came; its last line says how it ended.
        lines = lines[-1:]
    shown = lines[:OUTPUT_LINES]
    if len(lines) > OUTPUT_LINES:
        shown.append(f"… {len(lines) - OUTPUT_LINES} more lines")
    failed = step["is_error"] or (step["return_code"] not in (0, None))
    return [(f"  {line}", "red" if failed else "dim") for line in shown]


def _retry(step: Doc, _streamed: bool) -> Lines:
    error = _one_line(f"{step['error_class']}: {step['error']}")
    text = f"the model call failed ({error}); try {step['attempt'] + 1} in {step['delay_s']:.1f} s"
    return [(text, "yellow")]


def _error(step: Doc, _streamed: bool) -> Lines:
    return [(f"error: {printable(step['what'])}", "red")]


def _phase(step: Doc, _streamed: bool) -> Lines:
    return [(f"· {step['name']} {printable(step['detail'])}".rstrip(), "dim")]


def _user(step: Doc, _streamed: bool) -> Lines:
    return [] if step["source"] == "prompt" else [(f"» {printable(step['text'])}", "yellow")]


def _gap(step: Doc, _streamed: bool) -> Lines:
    return [(f"{step['missing']} events are missing: {step['why']}", "red")]


def _checkpoint(step: Doc, _streamed: bool) -> Lines:
    """One that changed something; the others say nothing that people do not see anyway."""
    if not step["changed"] or not step["commit"]:
        return []
    lines: Lines = [(f"· checkpoint {printable(step['commit'][:12])}", "dim")]
    if step["left_out"]:
        lines.append((_one_line(f"  not in it: {'; '.join(step['left_out'])}"), "yellow"))
    return lines


def _resumed(step: Doc, _streamed: bool) -> Lines:
    where = f"step {step['from_step'] or '?'} of attempt {step['from_attempt'] or '?'}"
    drone = f" on drone {printable(step['from_drone'])}" if step["from_drone"] else ""
    return [(_one_line(f"↻ goes on from {where}{drone}{': ' + step['why'] if step['why'] else ''}"), "yellow")]


def _text(step: Doc, _streamed: bool) -> Lines:
    return [(printable(step["text"]), None)]


def _guardrail(step: Doc, _streamed: bool) -> Lines:
    did = {"warn": "warned of", "block": "blocked", "halt": "ended the run at"}.get(step["action"], "spoke of")
    text = f"! guardrail {step['guardrail']} {did} a call: {step['reason']}"
    return [(_one_line(text), "yellow" if step["action"] == "warn" else "red")]


def _approval(step: Doc, _streamed: bool) -> Lines:
    return [(_one_line(f"? {step['tool']} waits for a person: {step['why']}"), "yellow")]


def _decision(step: Doc, _streamed: bool) -> Lines:
    by = {"clock": " by the clock: nobody answered in time", "interruption": ": it was broken off"}
    comment = f" ({step['comment']})" if step["comment"] and step["by"] == "person" else ""
    word = "✓ approved" if step["approved"] else "✗ denied"
    return [(_one_line(f"{word}{by.get(step['by'], '')}{comment}"), "green" if step["approved"] else "red")]


def _todo(step: Doc, _streamed: bool) -> Lines:
    return [(line, "cyan") for line in todo_lines(step["items"])]


def _verify(step: Doc, _streamed: bool) -> Lines:
    how = "passed" if step["passed"] else f"failed with exit code {step['return_code']}"
    head = _one_line(f"{'✓' if step['passed'] else '✗'} verify, attempt {step['attempt']}: {step['command']} {how}")
    # What went wrong stands at the end of what a test run prints.
    lines = printable(step["output"]).rstrip("\n").splitlines()[-(1 if step["passed"] else OUTPUT_LINES) :]
    colour: Style = "green" if step["passed"] else "red"
    return [(head, colour), *((f"  {line}", "dim" if step["passed"] else "red") for line in lines)]


def _compaction(step: Doc, _streamed: bool) -> Lines:
    why = {"overflow": "it was too long for the model", "asked": "somebody asked for it"}
    tokens = f"{step['tokens_before']:,} → {step['tokens_after']:,} tokens"
    head = f"the conversation was compacted ({why.get(step['cause'], 'the window was nearly full')}): {tokens}"
    files = [("read", step["files_read"]), ("changed", step["files_changed"])]
    named = [_one_line(f"  {what}: {', '.join(names)}") for what, names in files if names]
    return [(line, "dim") for line in (head, *named)]


def _child(step: Doc, _streamed: bool) -> Lines:
    try:
        inner = step["step"]
        lines = _STEPS[inner["kind"]](inner, False)
    except (KeyError, TypeError, AttributeError):
        # The steps of children are stored as their drone sent them; one that is not whole is not worth a line.
        return []
    shown = [_one_line(part) for text, _ in lines for part in text.splitlines()]
    rest = [f"… {len(shown) - CHILD_LINES} more lines"] if len(shown) > CHILD_LINES else []
    return [(f"  ┆ {line}", "dim") for line in [*shown[:CHILD_LINES], *rest]]


_STEPS: dict[str, Callable[[Doc, bool], Lines]] = {
    "assistant": _assistant,
    "reasoning": _reasoning,
    "tool_call": _tool_call,
    "tool_result": _tool_result,
    "retry": _retry,
    "error": _error,
    "phase": _phase,
    "user": _user,
    "gap": _gap,
    "checkpoint": _checkpoint,
    "resumed": _resumed,
    "comment": _text,
    "guardrail": _guardrail,
    "approval": _approval,
    "decision": _decision,
    "todo": _todo,
    "verify": _verify,
    "compaction": _compaction,
    "child": _child,
}


def _arguments(step: Doc) -> str:
    """The arguments of a call on one line: a command as it is, other things by name, long texts cut."""
    arguments = step["arguments"]
    if isinstance(arguments, dict) and step["tool"] == "shell":
        text = str(arguments.get("command", ""))
    elif isinstance(arguments, dict):
        text = "  ".join(f"{name}={_short(value)}" for name, value in arguments.items())
    else:
        text = str(arguments)
    return _one_line(text)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _joined(text, VALUE)


def _one_line(text: str) -> str:
    """Text that may come from anywhere, as one line without control characters, and not too long."""
    return _joined(printable(text), LINE)


def _joined(text: str, length: int) -> str:
    line = " ⏎ ".join(text.splitlines())
    return line if len(line) <= length else f"{line[: length - 1]}…"
