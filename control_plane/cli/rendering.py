"""Orders as text for people."""

from __future__ import annotations

import sys
from typing import Any

from control_plane.cli.step_lines import todo_lines, transcript_lines
from shared.terminal.output import Style, paint, printable
from shared.terminal.step_lines import command_lines

Doc = dict[str, Any]
_VERIFICATION = {
    "verified": "passed",
    "failed": "failed",
    "nothing_to_verify": "none configured",
    "not_reached": "skipped; the run ended first",
}


def outcome_text(order: Doc) -> str:
    """How the order ended, or its state so far; its results and its cost."""
    lines = [_headline(order), *_figures(order)]
    if order["patch"]:
        lines.append(f"  patch    fleet patch {order['id']}")
    if order.get("pull_request"):
        lines.append(f"  pull request  {_pull_request(order['pull_request'])}")
    if order["receipt"]:
        lines.append(f"  cleanup  {_receipt(order['receipt'])}")
    return "\n".join(lines) + "\n"


def _headline(order: Doc) -> str:
    text = f"{order['status']}: {printable(order['reason'])}"
    if not order["ended_at"]:
        return f"● {text}"
    good = order["status"] == "succeeded"
    return _styled(f"{'✓' if good else '✗'} {text}", "green" if good else "red")


def _figures(order: Doc) -> list[str]:
    """Where the order ran and what came of it; without the figures that it does not have yet."""
    drone, stats = order["drone"] or "no drone", order["stats"]
    if not order["attempt"]:
        return [f"  order    {order['id']}  on {drone}"]
    return [
        f"  order    {order['id']}  on {drone}, attempt {order['attempt']}",
        *([f"  branch   {_branch(order)}"] if order["branch"] or order["ended_at"] else []),
        f"  tokens   {stats['input_tokens']} in, {stats['output_tokens']} out, {stats['tool_calls']} tool calls",
        *([f"  checks   {_VERIFICATION.get(order['verification'], 'unknown')}"] if order["ended_at"] else []),
        f"  {money(stats['cost_usd'])}",
        f"  time     {stats['duration_label']}",
    ]


def order_text(order: Doc, *, outputs: bool = False) -> str:
    """An order in full: head, runs, steps, outcome; `outputs`: with the output of every call."""
    head = [
        f"order    {order['id']}  {order['status']}",
        f"reason   {printable(order['reason'])}",
        *_doing(order),
        f"project  {order['project']}   session {order['session']}   mode {order['mode']}",
        f"model    {order['model']} (provider {order['provider']})",
        f"prompt   {printable(order['prompt'])}",
        f"approve  {order['approve']}{_allowed(order)}",
        *(_styled(line, "yellow") for line in _waiting(order)),
        "",
    ]
    runs = [
        f"run {run['id']}  attempt {run['attempt']} on {run['drone']}: {run['status']}"
        + (f" ({run['doing']})" if run["doing"] and not run["ended_at"] else "")
        for run in order["runs"]
    ]
    steps = transcript_lines(order["steps"], outputs=outputs, ended=bool(order["ended_at"]))
    todo = [*todo_lines(order["todo"]), ""] if order["todo"] else []
    parts = [*runs, "", *steps, ""] if runs or steps else []
    return "\n".join([*head, *parts, *todo, outcome_text(order)])


def money(usd: float | None) -> str:
    """An unknown price is shown as unknown, never as zero."""
    return "cost     price unknown" if usd is None else f"cost     ${usd:.4f}"


def _allowed(order: Doc) -> str:
    return f"; allowed: {printable(', '.join(order['allow']))}" if order["allow"] else ""


def _doing(order: Doc) -> list[str]:
    """What the run is doing and, if it is stalled, what would change that."""
    if not (doing := order.get("doing")):
        return []
    line = f"doing    {printable(doing)}"
    if not order.get("stalled"):
        return [line]
    change = f"Without output or an answer, the drone ends the run. Cancel now: fleet cancel {order['id']}"
    return [_styled(line, "yellow"), f"         {change}"]


def _waiting(order: Doc) -> list[str]:
    """What waits for a person, and user messages that the run has not received."""
    lines = []
    if call := order["waiting_for"]:
        until = f", denied automatically at {call['until']}" if call["until"] else ""
        lines.append(f"pending  {call['tool']}: {printable(call['why'])} (call {call['call_id']}{until})")
        lines += command_lines(call.get("command", ""))
        lines.append(f"next     fleet approve {order['id']}    or    fleet deny {order['id']}")
    lines += [f"queued   {printable(word['text'])}" for word in order["unheard"]]
    return lines


def _branch(order: Doc) -> str:
    if not order["branch"]:
        return "none (nothing changed)"
    if order["pushed"]:
        return f"{order['branch']} (pushed, {str(order['head_commit'])[:10]})"
    return f"{order['branch']} (not pushed{': ' + order['push_error'] if order['push_error'] else ''})"


def _pull_request(document: Doc) -> str:
    """The state of the pull request; the text of one that a person must open is in `--json`."""
    parts = document["state"], document["url"], document["why"] and f"({document['why']})"
    return printable(" ".join(filter(None, parts)))


def _receipt(receipt: Doc) -> str:
    if receipt.get("unreachable_since"):
        return f"unreachable since {receipt['unreachable_since']}"
    stopped = f"{receipt['ended']} process{'' if receipt['ended'] == 1 else 'es'} stopped"
    return f"{stopped}, {receipt['survivors']} still running" if receipt["survivors"] else stopped


def _styled(text: str, style: Style) -> str:
    return paint(text, style, sys.stdout)
