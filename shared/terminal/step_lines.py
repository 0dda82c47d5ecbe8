"""The events of a run as terminal lines, one function per kind: for orders of the fleet and for `drone run`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from shared.durations import duration_label
from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    ChargeStep,
    CheckpointStep,
    ChildStep,
    CommentStep,
    CompactionStep,
    DecisionStep,
    ErrorStep,
    Finding,
    GapStep,
    GuardrailStep,
    Phase,
    PlanStep,
    PointReportStep,
    ReasoningStep,
    RememberStep,
    RetryStep,
    ReviewAnswerStep,
    ReviewerStep,
    ReviewVerdict,
    TodoItem,
    TodoStep,
    ToolCallStep,
    ToolResultStep,
    UserStep,
    VerifyStep,
)
from shared.plan_text import plan_text
from shared.plans import AgentPlan, report_line
from shared.terminal.ansi import safe_lines
from shared.terminal.output import Style, printable
from shared.visible_text import visible

Lines = list[tuple[str, Style | None]]
LINE, VALUE = 160, 60
"""Characters of a call on one line, and of one of its arguments."""
OUTPUT_LINES = 20
"""Lines of a call's output, its last ones; `fleet show ORDER --json` and `drone run --json` contain all of it."""
CHILD_LINES = 3
"""Lines of one step of a child agent: its findings are also the result of its parent's call."""
_DIM: Style = "dim"
_FAILED: Style = "red"
_MARKS = {"pending": "☐", "in_progress": "▶", "done": "☑"}


def event_lines(body: Body) -> Lines:
    """The lines that show an event, each with its style; none for events that are not shown to people.

    A call and its result are two events; `FoldedCalls` makes one line of them. Control characters are removed.
    """
    show = _SHOWN.get(type(body))
    return show(body) if show else []


class FoldedCalls:
    """Renders the events of a run in their order: a call becomes one line, once its result is known.

    The output of a call that failed is shown below it; with `outputs`, also that of the others. A call's line is cut to
    `width` columns, if there is one.
    """

    def __init__(self, *, outputs: bool = False, width: int | None = None) -> None:
        self._outputs = outputs
        self._width = width
        self._open: dict[str, str] = {}
        """The calls without a result, each as one line, by the id of the call."""
        self._named: set[str] = set()
        """Open calls whose line was shown already, because something below belongs to them."""

    def lines(self, body: Body) -> Lines:
        """As `event_lines`; none for a call itself."""
        match body:
            case ToolCallStep():
                self._open[body.call_id] = call_line(body)
                return []
            case ToolResultStep():
                self._named.discard(body.call_id)
                head, *output = _ended_call(self._open.pop(body.call_id, "call"), body, self._width)
                return [head, *(output if self._outputs or _failed(body) else [])]
            case ApprovalStep() | ChildStep():
                return [*self._name(body.call_id), *event_lines(body)]
        return event_lines(body)

    def running(self) -> str:
        """The line of the call that was made last and still runs; empty if there is none."""
        return next(reversed(self._open.values()), "")

    def still_open(self) -> Lines:
        """The calls of a run that continues, without those that are shown above."""
        return [line for call_id in self._open for line in self._name(call_id)]

    def left_open(self) -> Lines:
        """The calls that have no result; call this when the run has ended."""
        left: Lines = [(f"→ {line} (no result)", _FAILED) for line in self._open.values()]
        self._open.clear()
        return left

    def _name(self, call_id: str) -> Lines:
        if call_id in self._named or call_id not in self._open:
            return []
        self._named.add(call_id)
        return [(_cut(f"→ {self._open[call_id]}", self._width), "cyan")]


def call_line(body: ToolCallStep) -> str:
    """A call on one line: the tool and its arguments."""
    return f"{printable(body.tool)}: {_arguments(body)}".removesuffix(": ")


def output_lines(output: str, limit: int = OUTPUT_LINES) -> Lines:
    """The last lines of a command's output in its own colors, after the number of earlier ones."""
    lines = safe_lines(output)
    while lines and not lines[-1].strip():
        lines.pop()
    hidden = len(lines) - limit
    # One line is not replaced by a line that says that there is one.
    shown, head = (lines[-limit:], [_earlier(hidden)]) if hidden > 1 else (lines, [])
    return [*((f"  {line}", _DIM) for line in head), *((f"  {line}", "output") for line in shown)]


def text_lines(text: str) -> Lines:
    """What the model said."""
    return [(line, None) for line in _message_lines(text)]


def thinking_lines(text: str) -> Lines:
    """What the model thought, set apart by a bar also where there are no colors."""
    return [(f"│ {line}".rstrip(), _DIM) for line in _message_lines(text)]


def parsed_body(document: object) -> Body | None:
    """The event body in a JSON document; None if its kind is from a newer version, or if it is damaged."""
    try:
        return _adapter().validate_python(document)
    except ValidationError:
        return None


def todo_lines(items: Iterable[TodoItem]) -> list[str]:
    """The model's to-do list."""
    return [f"  {_MARKS[item.status]} {one_line(item.text)}" for item in items]


def command_lines(command: str) -> list[str]:
    """All of a command that waits for approval, behind a bar; nothing of it is cut or hidden."""
    return [f"  ┃ {line}" for line in printable(visible(command)).split("\n")] if command else []


def question_lines(text: str, choices: Sequence[str], default: str | None) -> list[str]:
    """A question of an agent: all of its text, then its choices with their numbers; the default is marked."""
    lines = [f"  {line}" for line in printable(visible(text)).split("\n")]
    for number, choice in enumerate(choices, start=1):
        lines.append(f"  {number}  {one_line(choice)}{' (default)' if choice == default else ''}")
    if default is not None and default not in choices:
        lines.append(f"  default: {one_line(default)}")
    return lines


def one_line(text: str) -> str:
    """Untrusted text as one line without control characters, limited in length."""
    return _joined(printable(text), LINE)


@cache
def _adapter() -> TypeAdapter[Body]:
    return TypeAdapter(Body)


def _assistant(body: AssistantStep) -> Lines:
    return text_lines(body.text)


def _reasoning(body: ReasoningStep) -> Lines:
    return thinking_lines(body.text)


def _user(body: UserStep) -> Lines:
    return [] if body.source == "prompt" else [(f"» {printable(body.text)}", "yellow")]


def _comment(body: CommentStep) -> Lines:
    return [(printable(body.text), None)]


def _tool_call(body: ToolCallStep) -> Lines:
    return [(f"→ {call_line(body)}", "cyan")]


def _tool_result(body: ToolResultStep) -> Lines:
    return _ended_call("", body)


def _ended_call(call: str, body: ToolResultStep, width: int | None = None) -> Lines:
    """The call and how it ended, in at most `width` columns, then its output."""
    code = f"exit {body.return_code}" if body.return_code else ""
    error = "error" if body.is_error and not code else ""
    how = ", ".join(filter(None, (error, code, duration_label(body.duration_ms))))
    mark, style = ("✗", _FAILED) if _failed(body) else ("✓", "green")
    how = f" ({how})" if call else f" {how}"
    line = _cut(f"{mark} {call}".rstrip(), width and width - len(how))
    return [(f"{line}{how}", style), *output_lines(body.output)]


def _failed(body: ToolResultStep) -> bool:
    return bool(body.is_error or body.return_code)


def _cut(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else f"{line[: max(0, width - 1)]}…"


def _charge(body: ChargeStep) -> Lines:
    """Only what a person would look for in vain elsewhere: a summary is shown by its own step."""
    if body.about != "broken_off" or not body.usage.cost_usd:
        return []
    return [(f"! the answer broke off; counted with at most ${body.usage.cost_usd:.4f}", "dim")]


def _retry(body: RetryStep) -> Lines:
    delay = duration_label(round(body.delay_s * 1000))
    return [(f"! {one_line(f'model call failed ({body.error_class}: {body.error})')}; retrying in {delay}", "yellow")]


def _error(body: ErrorStep) -> Lines:
    """Without its sentence if that is the reason of the run's end, which is shown as well."""
    if body.ended_run and body.code and "\n" not in body.detail:
        return [(f"error: {printable(body.code)}", "red")]
    lines: Lines = [(f"error: {printable(body.what)}", "red")]
    if body.detail:
        lines.append((f"  {one_line(body.detail)}", _DIM))
    return lines


def _review_answer(body: ReviewAnswerStep) -> Lines:
    text = f": {body.text}" if body.text else ""
    head = one_line(f"✎ review comment {body.comment[:6]} {body.verdict}{text}")
    styles: dict[ReviewVerdict, Style] = {"done": "green", "declined": "yellow", "asks": "cyan"}
    return [(head, styles[body.verdict])]


def _reviewer(body: ReviewerStep) -> Lines:
    if body.problem:
        return [(one_line(f"! not reviewed by {body.model}: {body.problem}"), "yellow")]
    count = len(body.findings)
    remarks = "no remarks" if not count else "1 remark" if count == 1 else f"{count} remarks"
    again = " (from the earlier run)" if body.repeated else ""
    lines: Lines = [(one_line(f"✎ reviewed by {body.model}: {remarks}{again}"), "yellow" if count else "green")]
    return lines + [(one_line(f"  {place_of(each)} {each.severity}: {each.text}"), None) for each in body.findings]


def place_of(finding: Finding) -> str:
    """The file of a finding, with its line if it has one."""
    return f"{finding.file}:{finding.line}" if finding.line else finding.file


def _remember(body: RememberStep) -> Lines:
    scope = " for all projects" if body.scope == "organization" else ""
    return [(one_line(f"✎ proposes a note{scope}: {body.text}"), "cyan")]


def _phase(body: Phase) -> Lines:
    return [(f"· {body.name}{': ' if body.detail else ''}{printable(body.detail)}", _DIM)]


def _gap(body: GapStep) -> Lines:
    return [(f"{body.missing} events missing: {printable(body.why)}", "red")]


def _checkpoint(body: CheckpointStep) -> Lines:
    """Only a checkpoint with a change is shown."""
    if not body.changed or not body.commit:
        return []
    lines: Lines = [(f"· checkpoint {printable(body.commit[:12])}", _DIM)]
    if left_out := (*body.left_out, *body.kept_on_disk):
        lines.append((one_line(f"  not included: {'; '.join(left_out)}"), "yellow"))
    return lines


def _guardrail(body: GuardrailStep) -> Lines:
    did = {"warn": "warned about a call", "block": "blocked a call", "halt": "stopped the run"}[body.action]
    text = f"! guardrail {body.guardrail} {did}: {body.reason}"
    return [(one_line(text), "yellow" if body.action == "warn" else "red")]


def _approval(body: ApprovalStep) -> Lines:
    if body.plan is not None:
        return [("? the agent presents its plan", "yellow"), *((line, None) for line in plan_lines(body.plan))]
    if body.about == "question":
        lines = question_lines(body.why, body.choices, body.default)
        return [("? the agent asks", "yellow"), *((line, None) for line in lines)]
    head = one_line(f"? approval required for {body.tool}: {body.why}")
    return [(head, "yellow"), *((line, None) for line in command_lines(body.command))]


def _decision(body: DecisionStep) -> Lines:
    if body.about == "question":
        return _answer(body)
    if body.about == "plan":
        return _plan_decision(body)
    by = {"clock": ": no answer before the deadline", "interruption": ": the call was interrupted"}.get(body.by, "")
    comment = f" ({body.comment})" if body.comment and body.by == "person" else ""
    word = "✓ approved" if body.approved else "✗ denied"
    return [(one_line(f"{word}{by}{comment}"), "green" if body.approved else "red")]


def plan_lines(plan: AgentPlan) -> list[str]:
    """A plan, each line indented."""
    return [f"  {line}".rstrip() for line in printable(plan_text(plan)).splitlines()]


def _plan_decision(body: DecisionStep) -> Lines:
    if body.by != "person":
        why = "no answer before the deadline" if body.by == "clock" else "the wait was interrupted"
        return [(f"✗ plan not approved: {why}", "red")]
    who, comment = body.who or "a user", f": {body.comment}" if body.comment else ""
    if not body.approved:
        return [(one_line(f"✗ {who} sent the plan back{comment}"), "yellow")]
    numbers = ", ".join(map(str, body.plan.approved)) if body.plan else ""
    return [(one_line(f"✓ {who} approved the plan{f', points {numbers}' if numbers else ''}{comment}"), "green")]


def _point_report(body: PointReportStep) -> Lines:
    style: Style = "green" if body.report.result == "done" else "yellow"
    return [(one_line(f"· point {body.report.point} {report_line(body.report)}"), style)]


def _answer(body: DecisionStep) -> Lines:
    if body.by == "interruption":
        return [("✗ not answered: the question was interrupted", "red")]
    if body.by == "person":
        return [(one_line(f"✓ {body.who or 'a user'} answered: {body.answer}"), "green")]
    if body.approved:
        return [(one_line(f"· no answer before the deadline; the default counts: {body.answer}"), "yellow")]
    return [("✗ no answer before the deadline", "red")]


def _todo(body: TodoStep) -> Lines:
    return [(line, "cyan") for line in todo_lines(body.items)]


def _verify(body: VerifyStep) -> Lines:
    # A command that was ended has no exit code.
    code = "" if body.return_code is None else f" with exit code {body.return_code}"
    how = "passed" if body.passed else f"failed{code}"
    head = one_line(f"{'✓' if body.passed else '✗'} verify, attempt {body.attempt}: {body.command} {how}")
    # The cause of a failure is at the end of a test run's output.
    return [(head, "green" if body.passed else "red"), *([] if body.passed else output_lines(body.output))]


def _compaction(body: CompactionStep) -> Lines:
    why = {"overflow": "too long for the model", "asked": "on request", "window": "context window nearly full"}
    tokens = f"{body.tokens_before:,} → {body.tokens_after:,} tokens"
    files = [("read", body.files_read), ("changed", body.files_changed)]
    named = [one_line(f"  {what}: {', '.join(names)}") for what, names in files if names]
    return [(line, _DIM) for line in (f"· conversation compacted ({why[body.cause]}): {tokens}", *named)]


def _child(body: ChildStep) -> Lines:
    # A child's step is stored as its drone sent it, and its text was not streamed.
    inner = parsed_body(body.step)
    lines = event_lines(inner) if inner is not None else []
    shown = [one_line(part) for text, _ in lines for part in text.split("\n")]
    rest = [_more(len(shown) - CHILD_LINES)] if len(shown) > CHILD_LINES else []
    return [(f"  ┆ {line}", _DIM) for line in [*shown[:CHILD_LINES], *rest]]


_SHOWN: dict[type[Any], Callable[[Any], Lines]] = {
    AssistantStep: _assistant,
    ReasoningStep: _reasoning,
    UserStep: _user,
    CommentStep: _comment,
    ReviewAnswerStep: _review_answer,
    ReviewerStep: _reviewer,
    RememberStep: _remember,
    ToolCallStep: _tool_call,
    ToolResultStep: _tool_result,
    RetryStep: _retry,
    ChargeStep: _charge,
    ErrorStep: _error,
    Phase: _phase,
    GapStep: _gap,
    CheckpointStep: _checkpoint,
    GuardrailStep: _guardrail,
    ApprovalStep: _approval,
    DecisionStep: _decision,
    PlanStep: lambda _: [],
    PointReportStep: _point_report,
    TodoStep: _todo,
    VerifyStep: _verify,
    CompactionStep: _compaction,
    ChildStep: _child,
}


def _message_lines(text: str) -> list[str]:
    return printable(text).strip("\n").split("\n") if text.strip() else []


def _more(count: int) -> str:
    return f"… {count} more {'line' if count == 1 else 'lines'}"


def _earlier(count: int) -> str:
    return f"… {count:,} earlier lines"


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
    line = " ⏎ ".join(text.removesuffix("\n").split("\n"))
    return line if len(line) <= length else f"{line[: length - 1]}…"
