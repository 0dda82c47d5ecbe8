"""Orders and steps as text for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from shared.terminal import Style, paint, printable

Doc = dict[str, Any]
LINE, VALUE = 160, 60
"""Characters of a call on one line, and of one of its arguments."""
OUTPUT_LINES = 12
"""Of a tool's result, on the screen; all of it is in `fleet show ORDER --json`."""


def step_lines(step: Doc, *, streamed: bool = False) -> list[str]:
    """The lines that show a step; none for what people need not see. `streamed`: its text is on the screen already."""
    show = _STEPS.get(step["kind"])
    return show(step, streamed) if show else []


def outcome_text(order: Doc) -> str:
    """The end of an order: how, what came of it, what it cost."""
    good = order["status"] == "succeeded"
    stats = order["stats"]
    lines = [
        _styled(f"{'✓' if good else '✗'} {order['status']}: {order['reason']}", "green" if good else "red"),
        f"  order    {order['id']}  on {order['drone'] or 'no drone'}, attempt {order['attempt']}",
        f"  branch   {_branch(order)}",
        f"  tokens   {stats['input_tokens']} in, {stats['output_tokens']} out, {stats['tool_calls']} tool calls",
        f"  cost     {money(stats['cost_usd'])}",
        f"  time     {stats['duration_label']}",
    ]
    if order["patch"]:
        lines.append(f"  patch    fleet patch {order['id']}")
    if order["receipt"]:
        lines.append(f"  receipt  {_receipt(order['receipt'])}")
    return "\n".join(lines) + "\n"


def order_text(order: Doc) -> str:
    """An order in full: head, runs, steps, outcome."""
    head = [
        f"order    {order['id']}  {order['status']}",
        f"reason   {printable(order['reason'])}",
        f"project  {order['project']}   session {order['session']}   mode {order['mode']}",
        f"model    {order['model']} (provider {order['provider']})",
        f"prompt   {printable(order['prompt'])}",
        "",
    ]
    runs = [
        f"run {run['id']}  attempt {run['attempt']} on {run['drone']}: {run['status']}"
        + (f" ({run['doing']})" if run["doing"] and not run["ended_at"] else "")
        for run in order["runs"]
    ]
    steps = [line for step in order["steps"] for line in step_lines(step)]
    return "\n".join([*head, *runs, "", *steps, "", outcome_text(order)])


def money(usd: float | None) -> str:
    return "unknown (the model has no known price)" if usd is None else f"${usd:.4f}"


# --- one function per kind of step ---------------------------------------------------


def _assistant(step: Doc, streamed: bool) -> list[str]:
    return [] if streamed or not step["text"] else [printable(step["text"])]


def _reasoning(step: Doc, streamed: bool) -> list[str]:
    return [] if streamed else [_styled(printable(step["text"]), "dim")]


def _tool_call(step: Doc, _streamed: bool) -> list[str]:
    return [_styled(f"→ {step['tool']} {_arguments(step)}", "cyan")]


def _tool_result(step: Doc, streamed: bool) -> list[str]:
    lines = printable(step["output"]).rstrip("\n").splitlines()
    if streamed:
        # A command's output was on the screen as it came; its last line says how it ended.
        lines = lines[-1:]
    shown = lines[:OUTPUT_LINES]
    if len(lines) > OUTPUT_LINES:
        shown.append(f"… {len(lines) - OUTPUT_LINES} more lines")
    failed = step["is_error"] or (step["return_code"] not in (0, None))
    return [_styled(f"  {line}", "red" if failed else "dim") for line in shown]


def _retry(step: Doc, _streamed: bool) -> list[str]:
    text = f"the model call failed ({step['error_class']}: {step['error']}); again in {step['delay_s']:.1f} s"
    return [_styled(text, "yellow")]


def _error(step: Doc, _streamed: bool) -> list[str]:
    return [_styled(f"error: {printable(step['what'])}", "red")]


def _phase(step: Doc, _streamed: bool) -> list[str]:
    return [_styled(f"· {step['name']} {printable(step['detail'])}".rstrip(), "dim")]


def _user(step: Doc, _streamed: bool) -> list[str]:
    return [] if step["source"] == "prompt" else [_styled(f"» {printable(step['text'])}", "yellow")]


def _gap(step: Doc, _streamed: bool) -> list[str]:
    return [_styled(f"{step['missing']} events are missing: {step['why']}", "red")]


def _text(step: Doc, _streamed: bool) -> list[str]:
    return [printable(step["text"])]


_STEPS: dict[str, Callable[[Doc, bool], list[str]]] = {
    "assistant": _assistant,
    "reasoning": _reasoning,
    "tool_call": _tool_call,
    "tool_result": _tool_result,
    "retry": _retry,
    "error": _error,
    "phase": _phase,
    "user": _user,
    "gap": _gap,
    "comment": _text,
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
    line = printable(" ⏎ ".join(text.splitlines()))
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ⏎ ".join(text.splitlines())
    return line if len(line) <= VALUE else f"{line[: VALUE - 1]}…"


def _branch(order: Doc) -> str:
    if not order["branch"]:
        return "none, nothing changed" if order["ended_at"] else "none yet"
    if order["pushed"]:
        return f"{order['branch']} (pushed, {str(order['head_commit'])[:10]})"
    return f"{order['branch']} (not pushed{': ' + order['push_error'] if order['push_error'] else ''})"


def _receipt(receipt: Doc) -> str:
    if receipt.get("unreachable_since"):
        return f"unreachable since {receipt['unreachable_since']}"
    return f"{receipt['survivors']} processes left, {receipt['ended']} ended"


def _styled(text: str, style: Style) -> str:
    return paint(text, style, sys.stdout)
