"""present_plan and report_point: the tools of an agent whose plan a person approves before anything is changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from drone.agent.values import ToolResult
from drone.tools.arguments import PresentPlanArguments, ReportPointArguments
from drone.tools.tool import BuiltinTool
from drone.tools.wrong_use import WrongUse
from shared.plans import (
    MAX_FILE,
    MAX_FILES,
    MAX_PLAN,
    MAX_POINT,
    MAX_POINTS,
    MAX_SUMMARY,
    MAX_TITLE,
    MAX_VERIFY,
    PRESENT,
    REPORT,
    AgentPlan,
    PlanPoint,
    PlanProgress,
    PointReport,
)

MAX_REASON = 2000
"""Characters."""
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_PRESENT = (
    "Present your plan, and wait for your user to approve it: they may edit it, approve a part of it, or send it back. "
    "Until then you may only read. The wait costs none of your time. Call it alone, and only once you know enough: "
    "what is to be changed, where, and how it will be verified."
)
_REPORT = (
    "Report what became of a point of the approved plan: done, skipped or changed. Your user sees it immediately, and "
    "every approved point needs a report. A second report on a point replaces the first."
)


class PlanKeeper(Protocol):
    """Where plans and reports go."""

    progress: PlanProgress

    def present(self, plan: AgentPlan) -> None: ...

    def report(self, report: PointReport) -> None: ...

    def left(self) -> str:
        """Which points have no report."""
        ...


def plan_tools(keeper: PlanKeeper) -> Sequence[BuiltinTool]:
    """The two tools. They change nothing in the workspace."""
    return (
        BuiltinTool(PRESENT, _PRESENT, PresentPlanArguments, lambda call: _present(keeper, call), read_only=True),
        BuiltinTool(REPORT, _REPORT, ReportPointArguments, lambda call: _report(keeper, call), read_only=True),
    )


def _present(keeper: PlanKeeper, call: PresentPlanArguments) -> ToolResult:
    """Raises WrongUse for a plan that has no point, is too long, or comes after one was approved."""
    if keeper.progress.state == "approved":
        raise WrongUse(f"{PRESENT}: your plan is approved already; carry it out, and report what differs with {REPORT}")
    keeper.present(_plan(call))
    return ToolResult("Your plan is with your user. Their decision follows as the next message.")


def _plan(call: PresentPlanArguments) -> AgentPlan:
    if not call.points:
        raise WrongUse(f"{PRESENT}: the plan has no points; state at least one thing that will be done")
    if len(call.points) > MAX_POINTS:
        raise WrongUse(
            f"{PRESENT}: {len(call.points):,} points are too many to be read by a user (maximum {MAX_POINTS}); group "
            "them"
        )
    plan = AgentPlan(
        title=_text("title", " ".join(call.title.split()), MAX_TITLE),
        summary=_text("summary", call.summary, MAX_SUMMARY, empty=True),
        points=tuple(
            PlanPoint(
                text=_text(f"points.{number}.text", point.text, MAX_POINT),
                files=_files(number, point.files),
                verify=_text(f"points.{number}.verify", point.verify, MAX_VERIFY, empty=True),
            )
            for number, point in enumerate(call.points, start=1)
        ),
    )
    if (size := len(plan.model_dump_json())) > MAX_PLAN:
        raise WrongUse(f"{PRESENT}: the plan has {size:,} characters (maximum {MAX_PLAN:,}); shorten its points")
    return plan


def _files(number: int, given: Sequence[str]) -> tuple[str, ...]:
    if len(given) > MAX_FILES:
        raise WrongUse(f"{PRESENT}: point {number} names {len(given)} files (maximum {MAX_FILES}); name folders")
    return tuple(_text(f"points.{number}.files", each, MAX_FILE) for each in given)


def _text(name: str, given: str, longest: int, *, empty: bool = False) -> str:
    text = given.strip()
    if not text and not empty:
        raise WrongUse(f"{PRESENT}: `{name}` is empty")
    if len(text) > longest:
        raise WrongUse(f"{PRESENT}: `{name}` has {len(text):,} characters (maximum {longest:,}); shorten it")
    return text


def _report(keeper: PlanKeeper, call: ReportPointArguments) -> ToolResult:
    """Raises WrongUse without an approved plan, for a point that is not in it, and without a reason."""
    plan = keeper.progress.plan
    if plan is None:
        raise WrongUse(f"{REPORT}: no plan is approved yet; call {PRESENT} first")
    if call.point not in plan.approved:
        numbers = ", ".join(map(str, plan.approved))
        raise WrongUse(f"{REPORT}: the approved plan has no point {call.point}; its points: {numbers}")
    text, commit = call.text.strip(), call.commit.strip().lower()
    if call.result != "done" and not text:
        raise WrongUse(f"{REPORT}: a point that was {call.result} needs the reason in `text`")
    if len(text) > MAX_REASON:
        raise WrongUse(f"{REPORT}: `text` has {len(text):,} characters (maximum {MAX_REASON:,}); shorten it")
    if commit and not _COMMIT.fullmatch(commit):
        raise WrongUse(f"{REPORT}: `commit` is not the id of a commit; leave it out if you made none")
    # Recorded first: a report that is in the journal counts, even if the run ends here.
    keeper.report(PointReport(point=call.point, result=call.result, commit=commit, text=text))
    return ToolResult(f"point {call.point} is {call.result}; {keeper.left()}")
