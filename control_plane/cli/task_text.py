"""Tasks and runs as text for people: a header, then the timeline as a narrative.

On a terminal the text is folded to its width; in a pipe each paragraph stays on one line.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from datetime import datetime
from typing import Any

from control_plane.cli.answers import cost
from control_plane.cli.step_lines import step_lines
from shared.durations import duration_label
from shared.terminal.ansi import safe_lines, uncolored
from shared.terminal.command_line import print_table
from shared.terminal.output import Style, paint, printable

Doc = dict[str, Any]
OUTPUT = 500
"""Characters of a tool's output that are shown, unless the full output is requested (S-123)."""
WIDEST = 100
_INDENT = " " * 7
_TAG = re.compile(r"(?<![\w@])@[a-z][a-z0-9_]*")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)]) +")
_COLOUR: dict[str, Style] = {
    "open": "yellow",
    "in_progress": "cyan",
    "failed": "red",
    "done": "green",
    "success": "green",
    "lost": "red",
    "running": "cyan",
}


def task_text(task: Doc) -> str:
    """A task in full: its description and state, then everything that happened, by day."""
    timeline = Timeline()
    lines = [
        *_head(task),
        *_description(task),
        "",
        *(line for entry in task["timeline"] for line in timeline.lines(entry)),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


class Timeline:
    """Renders the entries of a timeline one after the other; adds the day when a new one begins."""

    def __init__(self) -> None:
        self._day = ""

    def lines(self, entry: Doc) -> list[str]:
        """The lines of one entry, with an empty line after text that people and agents wrote."""
        at = local(entry["at"])
        lines = self._new_day(at)
        own = _run(entry["run"], at) if entry["kind"] == "run" else _comment(entry["comment"], at)
        return [*lines, *own]

    def _new_day(self, at: datetime) -> list[str]:
        day = f"{at:%A, %d %B %Y}"
        if day == self._day:
            return []
        self._day = day
        return [_styled(f"── {day} ──", "dim"), ""]


def run_text(run: Doc, *, full: bool) -> str:
    """A run with its steps."""
    lines = [
        f"run      {run['run_id']}  {_styled(run['status'], _COLOUR.get(run['status'], 'yellow'))}",
        *([f"reason   {printable(run['reason'])}"] if run["reason"] else []),
        *([f"doing    {printable(run['doing'])}"] if run["doing"] else []),
        f"task     {run['task'] or 'none'}   agent {run['agent'] or 'none'}   order {run['order']}",
        f"drone    {run['drone'] or 'none'}   attempt {run['attempt']}",
        f"model    {printable(run['model'])}",
        f"tokens   {run['input_tokens']:,} in, {run['output_tokens']:,} out, {run['tool_calls']} tool calls",
        f"cost     {cost(run['cost_usd'])}",
        f"time     {_seconds(run['duration_seconds']) if run['duration_seconds'] is not None else 'still running'}",
        *([f"branch   {run['branch']} ({str(run['head_commit'])[:10]})"] if run["branch"] else []),
        "",
        *(line for step in run["steps"] for line in _step(step, full=full)),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def local(moment: str) -> datetime:
    """A document's time in the reader's local time zone."""
    return datetime.fromisoformat(moment).astimezone()


def _head(task: Doc) -> list[str]:
    totals = task["totals"]
    count = f"{totals['runs']} run{'' if totals['runs'] == 1 else 's'}"
    unknown = totals["unknown_costs"] if totals["cost_usd"] is not None else 0
    more = f" and {unknown} at unknown price" if unknown else ""
    spent = f"{count}, {cost(totals['cost_usd'])}{more}, {duration_label(totals['duration_ms'])}"
    tokens = f"{totals['input_tokens']:,} tokens in, {totals['output_tokens']:,} out"
    state = _styled(task["status"].replace("_", " "), _COLOUR.get(task["status"], "dim"))
    return [
        *(_styled(line, "bold") for line in _folded(printable(task["title"]), f"{task['id']}  ")),
        f"  state    {state}, assigned to {task['assignee']}",
        *_folded(printable(task["reason"]), "  reason   "),
        f"  project  {task['project']}, mode {task['mode']}, priority {task['priority']}",
        f"  by       {printable(task['user']) or 'a user'}, {local(task['created_at']):%d %b %Y %H:%M}",
        *_folded(f"{spent}, {tokens}", "  spent    "),
        *([f"  branch   {_branch(task)}"] if task["branch"] else []),
        *([f"  request  {printable(_request(task['pull_request']))}"] if task["pull_request"] else []),
        *_folded(_limits(task["limits"]), "  limits   "),
    ]


def _branch(task: Doc) -> str:
    pushed = "pushed" if task["pushed"] else "not pushed"
    return f"{task['branch']} ({str(task['head_commit'])[:10]}, {pushed})"


def _request(pull_request: Doc) -> str:
    return f"pull request {pull_request.get('url') or pull_request.get('state') or 'requested'}"


def _limits(limits: Doc) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in limits.items())


def _description(task: Doc) -> list[str]:
    """The description, if it differs from the title."""
    if task["description"].strip() == task["title"].strip():
        return []
    return ["", *_paragraphs(task["description"], "  ")]


def _comment(comment: Doc, at: datetime) -> list[str]:
    clock = _styled(f"{at:%H:%M}", "dim")
    if comment["author"] == "system":
        return [_styled(line, "dim") for line in _folded(printable(comment["text"]), f"{at:%H:%M}  · ")]
    who = comment["author"]
    if who == "user":
        who = f"{printable(comment['user'])} (user)" if comment["user"] else "user"
    return [f"{clock}  {_styled(who, 'bold')}", *_paragraphs(comment["text"], _INDENT), ""]


def _run(run: Doc, at: datetime) -> list[str]:
    """One line: agent, drone, outcome, duration, cost and branch."""
    who = f"{run['agent'] or 'no agent'} on {run['drone'] or 'no drone'}"
    running = run["ended_at"] is None
    parts = [
        who,
        run["doing"] or "running" if running else _how(run),
        *([] if running else [_seconds(run["duration_seconds"]), cost(run["cost_usd"])]),
        *([run["branch"]] if run["branch"] else []),
        run["run_id"],
    ]
    mark = {"success": "✓", "running": "▶"}.get(run["status"], "✗")
    colour = _COLOUR.get(run["status"], "yellow")
    lines = _folded(f"{mark} {printable(' · '.join(parts))}", f"{at:%H:%M}  ", f"{_INDENT}  ")
    return [_styled(line, colour) for line in lines]


def _how(run: Doc) -> str:
    odd = run["exit_status"] not in {None, "submitted", "stopped"}
    return f"{run['status']} ({run['exit_status']})" if odd else str(run["status"])


def _seconds(seconds: float) -> str:
    return duration_label(round(seconds * 1000))


def _step(step: Doc, *, full: bool) -> list[str]:
    number = _styled(f"{step['number']:>4}  ", "dim")
    if step["kind"] == "tool_result":
        lines = [f"  {line}" for line in _output(str(step["output"]), full=full).splitlines()]
    else:
        lines = [line for text in step_lines(step) for line in text.splitlines()]
    return [(number if index == 0 else " " * 6) + line for index, line in enumerate(lines)]


def _output(text: str, *, full: bool) -> str:
    shown = "\n".join(map(uncolored, safe_lines(text))).rstrip("\n")
    if full or len(shown) <= OUTPUT:
        return shown
    return f"{shown[:OUTPUT]}\n… {len(shown) - OUTPUT:,} more characters; --full shows them"


# --- folding --------------------------------------------------------------------------------


def _paragraphs(text: str, indent: str) -> list[str]:
    """The text as written, each line folded separately; fenced code is left alone."""
    lines: list[str] = []
    code = False
    for line in printable(text).strip("\n").split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        if code or fence:
            lines.append(indent + line)
        else:
            begin = indent + line[: len(line) - len(line.lstrip())]
            item = _ITEM.match(line.lstrip())
            others = begin + " " * len(item.group()) if item else begin
            lines += [_with_tags(each) for each in _folded(line.strip(), begin, others)] or [""]
        code = code != fence
    return lines


def _folded(text: str, first: str, others: str | None = None) -> list[str]:
    """`text` after `first`, folded to the terminal; further lines are indented equally, or begin with `others`."""
    if not text:
        return []
    others = " " * len(first) if others is None else others
    return textwrap.wrap(
        " ".join(text.split()),
        width=_width(),
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _width() -> int:
    if not sys.stdout.isatty():
        return sys.maxsize
    return max(40, min(shutil.get_terminal_size().columns, WIDEST))


def _with_tags(line: str) -> str:
    return _TAG.sub(lambda tag: _styled(tag.group(), "cyan"), line)


def _styled(text: str, style: Style) -> str:
    return paint(text, style, sys.stdout)


def task_table(tasks: list[Doc]) -> str:
    """Print the tasks as a table."""
    columns = ("TASK", "STATUS", "TITLE", "ASSIGNEE", "TIME", "RUNS", "COST", "PROJECT", "REASON")
    rows = [
        (
            task["id"],
            task["status"],
            task["title"],
            task["assignee"],
            duration_label(task["totals"]["duration_ms"]),
            task["totals"]["runs"],
            cost(task["totals"]["cost_usd"]),
            task["project"],
            task["reason"],
        )
        for task in tasks
    ]
    print_table(columns, rows, empty="no tasks; create one: fleet task create 'TITLE'")
    return ""
