"""A plan of the model: nothing is changed before a person approved it, and each approved point is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drone.agent.agent import Agent
from drone.agent.approvals import AskingFor
from drone.agent.budget import RunBudget
from drone.agent.children import Children
from drone.agent.in_memory import KeptEvents, QuietControls
from drone.agent.plan_gate import PlanGate
from drone.agent.values import Ruling, ToolResult
from shared.errors import Interrupted, Preempted
from shared.events import ApprovalStep, DecisionStep, PlanStep, PointReportStep, ToolResultStep
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from shared.plans import MAX_POINTS, AgentPlan, PlanPoint, PlanProgress, PointReport
from shared.work_order import Limits
from tests.support.people import Person
from tests.support.scripted_model import ScriptedModel
from tests.support.toolboxes import toolbox, workspace
from tests.support.transcripts import assert_valid

__all__ = ["workspace"]
POINTS = [{"text": "Write one.txt", "files": ["one.txt"], "verify": "cat one.txt"}, {"text": "Write two.txt"}]
FIRST = PlanPoint(text="Write one.txt", files=("one.txt",), verify="cat one.txt")
PLAN = AgentPlan(title="Notes", points=(FIRST, PlanPoint(text="Write two.txt")))
EDITED = AgentPlan(
    title="Notes", points=(PlanPoint(text="Write first.txt"), PlanPoint(text="Write two.txt", approved=False))
)
APPROVED = Ruling(approved=True, who="kim", plan=PLAN)


def makes(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def replies(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(calls)}


WRITES = makes("file_write", path="one.txt", content="one")
PRESENTS = makes("present_plan", title="Notes", points=POINTS)
DONE = makes("report_point", point=1, result="done", commit="1a2b3c4")


class Planned:
    """A loop that plans first, with real tools in a directory."""

    def __init__(
        self,
        workspace: Path,
        script: list[Any],
        *answers: Ruling | BaseException,
        progress: PlanProgress | None = None,
        **limits: Any,
    ) -> None:
        self.recorder, controls, self.limits = KeptEvents(), QuietControls(), Limits(**limits)
        clock = Person(controls, {f"plan-{number}": each for number, each in enumerate(answers, 1)})
        budget = RunBudget(self.limits, clock)
        known: dict[str, Any] = {"recorder": self.recorder, "controls": controls, "budget": budget, "clock": clock}
        self.gate = PlanGate(progress or PlanProgress(), **known, timeout=self.limits.approval_timeout)
        tools = toolbox(workspace, plan=self.gate, spawn=self._spawn)
        self.gate.harmless = tools.read_only
        known |= {"limits": self.limits, "model": ScriptedModel(script, clock, cost_usd=0.0), "toolbox": tools}
        self.agent = Agent(**known, approvals=AskingFor("all", (), tools.read_only), planning=self.gate)
        rules = {"guardrails": self.agent.guardrails, "approvals": None, "ids": self.agent.ids}
        self.children = Children(**known, **rules, system="s", planning=self.gate)

    def _spawn(self, *call: Any) -> ToolResult:
        return self.children.spawn(*call)

    def run(self) -> Outcome:
        self.agent.approvals = None
        try:
            return self.agent.run("You are tested.", (), "Do it.")
        finally:
            assert_valid(self.agent.transcript)

    def told(self, beginning: str) -> str:
        """What the agent was told on behalf of a person, from this beginning."""
        found = [message.content for message in self.agent.transcript if message.role == "user"]
        return next(text for text in found if text.startswith(beginning))

    def recorded(self, kind: type[Any]) -> list[Any]:
        return [body for body in self.recorder.bodies if isinstance(body, kind)]


def test_until_the_approval_only_reading_tools_run_and_afterwards_all_of_them(workspace: Path) -> None:
    script = [replies(WRITES), replies(DONE), replies(PRESENTS), replies(WRITES), replies(PRESENTS), {"text": "ok"}]
    planned = Planned(workspace, script, APPROVED)
    before = planned.agent.toolbox.specs()
    planned.run()
    results = planned.recorded(ToolResultStep)
    assert [result.execution for result in results[:3]] == ["held_back", "answered", "answered"]
    assert ["no plan is approved yet" in result.output for result in results[:2]] == [True, True]
    assert (workspace / "one.txt").read_text() == "one"
    # An approved plan is not presented again, and the prompt and the tools stay as they were.
    assert "approved already" in results[-1].output
    assert planned.agent.tools == planned.agent.toolbox.specs() == before
    # The person decides on the plan, and not on the single call that was refused.
    assert [step.about for step in planned.recorded(ApprovalStep)] == ["plan"]
    refused = Planned(workspace, [replies(WRITES), {"text": "ok"}])
    refused.agent.run("s", (), "Do it.")
    assert refused.recorded(ApprovalStep) == []
    (workspace / "one.txt").unlink()
    Planned(
        workspace, [replies(makes("spawn", task="Write it.")), replies(WRITES), {"text": "no"}, {"text": "ok"}]
    ).run()
    assert not (workspace / "one.txt").exists(), "a child changes nothing either"
    both = [replies(PRESENTS, makes("glob", pattern="*"), makes("submit", summary="Too early.")), {"text": "ok"}]
    planned = Planned(workspace, both, APPROVED, max_run_seconds=10)
    assert planned.run().response == "ok", "the wait costs no run time"
    assert [step.execution for step in planned.recorded(ToolResultStep)] == ["answered", "held_back", "held_back"]
    (asked,), (decided,) = planned.recorded(ApprovalStep), planned.recorded(DecisionStep)
    assert (asked.call_id, asked.why, asked.plan) == ("plan-1", "Notes", PLAN)
    assert planned.recorded(PlanStep) == [PlanStep(plan=PLAN)]
    assert (decided.about, decided.approved, decided.who, decided.plan) == ("plan", True, "kim", PLAN)
    assert "person" in planned.recorder.waited_for


def test_the_agent_is_told_which_points_were_changed_and_which_dropped(workspace: Path) -> None:
    ruling = Ruling(approved=True, who="kim", plan=EDITED, comment="Be brief.")
    planned = Planned(workspace, [replies(PRESENTS), {"text": "ok"}], ruling)
    planned.run()
    told = planned.told("kim approved")
    assert "1. Write first.txt [changed or added by the user]\n2. NOT APPROVED, do not do this: Write two.txt" in told
    assert told.endswith("Their comment: Be brief.")

    shorter = Ruling(approved=True, plan=PLAN.model_copy(update={"points": PLAN.points[:1]}))
    planned = Planned(workspace, [replies(PRESENTS), {"text": "ok"}], shorter)
    planned.run()
    told = planned.told("Your user approved")
    assert "1. Write one.txt\n   Files: one.txt\n   Verify: cat one.txt" in told
    assert told.endswith("No longer in the plan; do not do this:\n- Write two.txt")


def test_a_plan_sent_back_is_revised_with_the_persons_words_any_number_of_times(workspace: Path) -> None:
    backs = [Ruling(approved=False, comment=text, who="kim") for text in ("Shorter.", "Shorter still.")]
    script = [replies(PRESENTS), replies(PRESENTS), replies(WRITES), replies(PRESENTS), {"text": "ok"}]
    planned = Planned(workspace, script, *backs, APPROVED)
    planned.run()
    assert planned.told("kim sent your plan back:\n\nShorter.")
    assert planned.told("kim sent your plan back:\n\nShorter still.")
    assert not (workspace / "one.txt").exists()
    assert [step.call_id for step in planned.recorded(ApprovalStep)] == ["plan-1", "plan-2", "plan-3"]
    assert planned.gate.progress.state == "approved"


def test_without_an_approval_nothing_changes_and_a_later_run_presents_the_same_plan(workspace: Path) -> None:
    planned = Planned(workspace, [replies(PRESENTS)], approval_timeout=120)
    outcome = planned.run()
    assert (outcome.exit_status, outcome.succeeded) == (ExitStatus.PLAN_UNANSWERED, False)
    assert outcome.reason == "The plan was not approved within 120 s; nothing was changed."
    assert planned.recorded(DecisionStep)[0].by == "clock"
    resumed = Planned(workspace, [{"text": "ok"}], APPROVED, progress=planned.gate.progress)
    assert resumed.run().response == "ok"
    assert resumed.recorded(ApprovalStep)[0].plan == PLAN

    # A message counts as the answer, and a run that has to end keeps its plan presented.
    message = Interrupted(Message(role="user", content="Not like this."))
    told = Planned(workspace, [replies(PRESENTS), replies(WRITES), {"text": "ok"}], message)
    told.run()
    assert told.told("Not like this.")
    assert (told.gate.progress.state, (workspace / "one.txt").exists()) == ("planning", False)
    ended = Planned(workspace, [replies(PRESENTS)], Preempted())
    with pytest.raises(Preempted):
        ended.run()
    assert ended.gate.progress.state == "presented"


def test_each_report_is_recorded_and_says_what_is_left(workspace: Path) -> None:
    again = makes("report_point", point=1, result="changed", text="In another file.")
    planned = Planned(workspace, [replies(PRESENTS), replies(DONE), replies(again), {"text": "ok"}], APPROVED)
    planned.run()
    reports = [step.report for step in planned.recorded(PointReportStep)]
    assert reports[0] == PointReport(point=1, result="done", commit="1a2b3c4")
    assert planned.gate.progress.reports == (reports[1],)
    assert planned.recorded(ToolResultStep)[1].output == "point 1 is done; not reported yet: 2"
    assert planned.gate.reminder().startswith("Your turn is about to end, but you have not reported points 2 of")


def test_a_report_that_cannot_be_meant_is_explained(workspace: Path) -> None:
    reports = [
        ({"point": 3, "result": "done"}, "no point 3; its points: 1, 2"),
        ({"point": 1, "result": "skipped"}, "`text`"),
        ({"point": 1, "result": "done", "commit": "HEAD"}, "not the id of a commit"),
    ]
    asked = [replies(makes("report_point", **arguments)) for arguments, _ in reports]
    planned = Planned(workspace, [replies(PRESENTS), *asked, {"text": "ok"}], APPROVED)
    planned.run()
    told = [result.output for result in planned.recorded(ToolResultStep)[1:]]
    assert [says for (_, says), text in zip(reports, told, strict=True) if says not in text] == []
    assert planned.recorded(PointReportStep) == []


def test_a_plan_that_nobody_could_approve_is_refused_and_presented_to_nobody(workspace: Path) -> None:
    plans: list[tuple[dict[str, Any], str]] = [
        ({"points": []}, "no points"),
        ({"points": [{"text": "x"}] * 1000}, f"maximum {MAX_POINTS}"),
        ({"points": [{"text": " "}]}, "`points.1.text` is empty"),
        ({"points": [{"text": "x" * 2001}]}, "2,001 characters"),
        ({"points": [{"text": "x", "files": ["f"] * 21}]}, "21 files"),
        ({"points": [{"text": "x" * 2000}] * 40}, "the plan has 8"),
        ({"points": [{"text": "x"}], "title": ""}, "`title` is empty"),
    ]
    asked = [replies(makes("present_plan", **{"title": "t", **given})) for given, _ in plans]
    planned = Planned(workspace, [*asked, {"text": "ok"}])
    planned.run()
    told = [result.output for result in planned.recorded(ToolResultStep)]
    assert [says for (_, says), text in zip(plans, told, strict=True) if says not in text] == []
    assert planned.recorded(PlanStep) == planned.recorded(ApprovalStep) == []


def test_once_its_message_was_compacted_the_approved_plan_is_in_every_question(workspace: Path) -> None:
    progress = PlanProgress(state="approved", rounds=1, presented=PLAN, plan=EDITED)
    gate = Planned(workspace, [], progress=progress).gate
    (notice,) = gate.notices([Message(role="user", content="A summary.")])
    assert "1. Write first.txt\n2. NOT APPROVED" in notice.content
    assert "not reported yet: 1" in notice.content
    assert gate.notices([Message(role="user", content=notice.content)]) == ()
