"""Orders as text for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from control_plane.cli.answers import outcome_word
from control_plane.cli.step_lines import answering, todo_lines, transcript_lines
from shared.reason_text import score_text
from shared.reasons import DroneScore
from shared.terminal.output import Style, paint, printable
from shared.terminal.step_lines import command_lines, question_lines
from shared.titles import title

Doc = dict[str, Any]
_SHOWN_SCORES = 4
_MARKS: dict[str, tuple[str, Style]] = {
    **dict.fromkeys(("done", "unchanged", "succeeded"), ("✓", "green")),
    "asks": ("?", "cyan"),
    "incomplete": ("!", "yellow"),
    **dict.fromkeys(("failed", "canceled"), ("✗", "red")),
}
_VERIFICATION = {
    "verified": "passed",
    "failed": "failed",
    "nothing_to_verify": "none configured",
    "not_reached": "skipped; the run ended first",
}


def outcome_text(order: Doc) -> str:
    """How the order ended, or its state so far; its results and its cost."""
    lines = [_headline(order), *_figures(order)]
    if order.get("asks"):
        lines.append(f"  reply    fleet submit 'TEXT' --session {order['session']}")
    lines += [f"  left out  {printable(each)}" for each in order.get("left_out") or ()]
    if order["patch"]:
        lines.append(f"  patch    fleet patch {order['id']}")
    if order.get("pull_request"):
        lines.append(f"  pull request  {_pull_request(order['pull_request'])}")
    if order["receipt"]:
        lines.append(f"  cleanup  {_receipt(order['receipt'])}")
    return "\n".join(lines) + "\n"


def _headline(order: Doc) -> str:
    text = f"{outcome_word(order)}: {printable(order['reason'])}"
    if not order["ended_at"]:
        return f"● {text}"
    mark, style = mark_of(order)
    return _styled(f"{mark} {text}", style)


def mark_of(order: Doc) -> tuple[str, Style]:
    """The mark of an ended order, and its color."""
    # A newer control plane may know more outcomes.
    return _MARKS.get(outcome_word(order), ("✗", "red"))


def _figures(order: Doc) -> list[str]:
    """Where the order ran and what came of it; without the figures that it does not have yet."""
    drone, stats = order["drone"] or "no drone", order["stats"]
    if not order["attempt"]:
        return [f"  order    {order['id']}  on {drone}"]
    return [
        f"  order    {order['id']}  on {drone}, attempt {order['attempt']}",
        *([f"  branch   {_branch(order)}"] if order["branch"] or order["ended_at"] else []),
        f"  tokens   {_tokens(stats)}, {stats['tool_calls']} tool calls",
        *([f"  checks   {_VERIFICATION.get(order['verification'], 'unknown')}"] if order["ended_at"] else []),
        f"  {money(stats['cost_usd'])}",
        f"  time     {stats['duration_label']}{_waited(stats)}",
    ]


def _waited(stats: Doc) -> str:
    return f" of work, {stats['waiting_label']} of waiting for a user" if stats.get("waiting_label") else ""


def _tokens(stats: Doc) -> str:
    cached = stats.get("cached_tokens")
    return f"{stats['input_tokens']} in{f' ({cached} cached)' if cached else ''}, {stats['output_tokens']} out"


def order_text(order: Doc, *, outputs: bool = False) -> str:
    """An order in full: head, runs, steps, outcome; `outputs`: with the output of every call."""
    head = [
        f"order    {order['id']}  {outcome_word(order)}",
        f"reason   {printable(order['reason'])}",
        *_doing(order),
        f"project  {order['project']}   session {order['session']}   mode {order['mode']}",
        f"model    {order['model']} (provider {order['provider']})"
        + (f"   thinking {order['thinking']}" if order.get("thinking") else ""),
        *([f"profile  {order['profile']}"] if order.get("profile") else []),
        *([f"reviewer {order['reviewer']}"] if order.get("reviewer") else []),
        f"prompt   {printable(order['prompt'])}",
        *([f"ticket   {order['ticket']}"] if order.get("ticket") else []),
        f"approve  {order['approve']}{_allowed(order)}",
        *(f"check    {printable(command)}" for command in order.get("verify") or ()),
        *_limits(order),
        *(_styled(line, "yellow") for line in _waiting(order)),
        *_review(order),
        *_removed(order),
        "",
    ]
    runs = [line for run in order["runs"] for line in _run_lines(run)]
    steps = transcript_lines(order["steps"], outputs=outputs, ended=bool(order["ended_at"]))
    plan = [*report_lines(order["plan"]), ""] if order.get("plan") else []
    todo = [*todo_lines(order["todo"]), ""] if order["todo"] else []
    parts = [*runs, "", *steps, ""] if runs or steps else []
    return "\n".join([*head, *parts, *todo, *plan, outcome_text(order)])


def _run_lines(run: Doc) -> Iterator[str]:
    doing = f" ({run['doing']})" if run["doing"] and not run["ended_at"] else ""
    yield f"run {run['id']}  attempt {run['attempt']} on {run['drone']}: {run['status']}{doing}"
    placement = run.get("placement")
    if placement and placement["scores"]:
        scores = [DroneScore.model_validate(each) for each in placement["scores"]]
        more = placement["scored"] - _SHOWN_SCORES
        yield f"  scores   {'; '.join(map(score_text, scores[:_SHOWN_SCORES]))}{f'; {more} more' if more > 0 else ''}"


def report_lines(plan: Doc) -> list[str]:
    """What became of each approved point of a plan, a line each; none before the approval."""
    reported = [point for point in plan["points"] if point["report"]]
    lines = (f"{point['number']:>3}  {_shortened(point)}: {printable(point['report'])}" for point in reported)
    return ["plan", *lines] if reported else []


def _shortened(point: Doc) -> str:
    return printable(title(point["text"], 60))


def question_text(wait: Doc) -> list[str]:
    """The question that an order's `waiting_for` holds, and what happens after its deadline."""
    after = "its default counts" if wait["default"] is not None else "the agent continues without an answer"
    until = f"; after {wait['deadline']}, {after}" if wait["deadline"] else ""
    return [
        f"question (call {wait['call_id']}{until})",
        *question_lines(wait["text"], wait["choices"], wait["default"]),
    ]


def wait_lines(wait: Doc) -> list[str]:
    """All that an order's `waiting_for` asks."""
    if wait.get("kind") == "question":
        return question_text(wait)
    if wait.get("plan"):
        return printable(wait["plan"]["text"]).split("\n")
    until = f", denied automatically at {wait['until']}" if wait["until"] else ""
    head = f"pending  {wait['tool']}: {printable(wait['why'])} (call {wait['call_id']}{until})"
    return [head, *command_lines(wait.get("command", ""))]


def money(usd: float | None) -> str:
    """An unknown price is shown as unknown, never as zero."""
    return "cost     price unknown" if usd is None else f"cost     ${usd:.4f}"


def _allowed(order: Doc) -> str:
    return f"; allowed: {printable(', '.join(order['allow']))}" if order["allow"] else ""


def _limits(order: Doc) -> list[str]:
    """The limits that are not the default, and where they are set."""
    own = {name: each for name, each in order.get("limits", {}).items() if each["source"] != "default"}
    words = (f"{name} {_value(each['value'])} ({each['source']})" for name, each in own.items())
    return [f"limits   {', '.join(words)}"] if own else []


def _value(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


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
    call = order["waiting_for"]
    if call and call.get("kind") == "plan":
        lines.append(f"plan     {printable(call['why'])} (next: fleet plan show {order['id']})")
    elif call:
        lines += [*wait_lines(call), f"next     {answering(order['id'], call.get('kind'))}"]
    lines += [_queued(word) for word in order["unheard"]]
    return lines


def _queued(word: Doc) -> str:
    going = "recalled" if word.get("state") == "taking_back" else "queued  "
    return f"{going} {printable(word['text'])}"


def _removed(order: Doc) -> list[str]:
    return [f"removed  {order['removed']}"] if order.get("removed") else []


def _review(order: Doc) -> list[str]:
    if not (count := order.get("unsettled", 0)):
        return []
    return [f"review   {count} comment{'' if count == 1 else 's'} without an answer (fleet review ls {order['id']})"]


def _branch(order: Doc) -> str:
    if not order["branch"]:
        # A run that could not deliver its work does not say how many files it changed.
        return "none (nothing changed)" if order.get("files_changed") == 0 else "none"
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
