"""Child agents: the same prefix, their parent's limits, and nothing of their own that outlives them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from drone.agent.approvals import AskingFor
from drone.agent.budget import RunBudget, recorded_apart
from drone.agent.children import SPAWN, Children
from drone.agent.in_memory import EchoToolbox, KeptEvents, NoGuardrails, NoHooks
from drone.agent.values import Ruling, ToolResult, ToolSpec, Verdict
from shared.errors import Interrupted
from shared.events import ChildStep, ToolResultStep, Usage
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.scripted import Loop, calls, raising, says, submits
from tests.support.scripted_model import ScriptedModel


class Toolbox(EchoToolbox):
    """The echo tools, `spawn` and `todo`."""

    children: Children

    def specs(self) -> list[ToolSpec]:
        return [*super().specs(), ToolSpec(SPAWN, "Let a child do it."), ToolSpec("todo", "Keep a list.")]

    def execute(self, call: ToolCall) -> ToolResult:
        if call.name != SPAWN:
            return super().execute(call)
        asked = json.loads(call.arguments)
        return self.children.spawn(call.id, asked["task"], asked.get("tools"))


class Family(Loop):
    """A parent that can have children, with a scripted model that they share."""

    def __init__(self, script: list[dict[str, object]], limits: Limits | None = None) -> None:
        super().__init__(script, limits or Limits(), cost_usd=0.5, toolbox=Toolbox())
        budget = RunBudget(self.limits, self.clock)
        self.agent = replace(self.agent, budget=budget)
        self.toolbox.children = Children(
            model=self.model,
            toolbox=self.toolbox,
            recorder=self.recorder,
            controls=self.controls,
            limits=self.limits,
            clock=self.clock,
            budget=budget,
            guardrails=NoGuardrails(),
            approvals=None,
            ids=self.agent.ids,
            system="You are tested.",
        )

    @property
    def results(self) -> list[str]:
        return [body.output for body in self.recorder.bodies if isinstance(body, ToolResultStep)]

    @property
    def children(self) -> list[dict[str, Any]]:
        """The steps of children."""
        return [body.step for body in self.recorder.bodies if isinstance(body, ChildStep)]

    @property
    def of_children(self) -> list[str]:
        return [step["kind"] for step in self.children]


def spawns(task: str, **more: object) -> dict[str, object]:
    return {"tool_calls": [{"name": SPAWN, "arguments": {"task": task, **more}}]}


def test_a_child_begins_with_the_parents_system_prompt_byte_for_byte_and_its_own_task() -> None:
    family = Family([spawns("Look."), calls("inside"), says("found it"), says("done")])
    assert family.run().response == "done"
    parents, childs = family.model.asked[0], family.model.asked[1]
    assert childs[0] == parents[0]
    assert [message.content for message in childs] == ["You are tested.", "Look."]
    assert family.results == ["found it"]
    assert family.of_children == ["user", "assistant", "tool_call", "tool_result", "assistant"]
    # What a child says is a sign of progress, and not shown.
    assert ("output", "") in family.recorder.deltas
    assert "found it" not in "".join(text for _, text in family.recorder.deltas)


class NoEcho(NoHooks):
    def block(self, call: ToolCall) -> str | None:
        return "no echo here" if call.name == "echo" else None


def test_a_child_is_told_of_all_tools_and_kept_from_those_that_are_not_for_it_or_that_a_policy_blocks() -> None:
    family = Family([spawns("Look.", tools=["submit"]), calls("x"), says("could not"), says("done")])
    family.run()
    assert family.toolbox.ran == []
    assert family.children[3]["output"] == "Error: echo is not available to you; use submit."
    deeper = Family([spawns("Look."), spawns("Look deeper."), says("did it myself"), says("done")])
    deeper.run()
    assert deeper.results == ["did it myself"]
    listed = Family(
        [spawns("Look."), {"tool_calls": [{"name": "todo", "arguments": {}}]}, says("found it"), says("done")]
    )
    listed.run()
    assert (listed.toolbox.ran, listed.children[3]["is_error"]) == ([], True)
    blocked = Family([spawns("Look."), calls("a"), says("could not"), says("done")])
    blocked.toolbox.children = replace(blocked.toolbox.children, hooks=NoEcho())
    blocked.run()
    assert (blocked.toolbox.ran, blocked.of_children[3]) == ([], "tool_result")


def test_what_a_child_says_last_is_its_result_only_if_it_finished() -> None:
    working = {**calls("a"), "text": "I look."}
    for end, reason in (({"status": 500}, "script failed with 500"), (says(""), "1 unusable answers")):
        family = Family([spawns("Look."), working, end, says("done")], Limits(max_format_errors=1))
        assert family.run().response == "done"
        returned = [body for body in family.recorder.bodies if isinstance(body, ToolResultStep)][-1]
        assert (returned.is_error, returned.output) == (True, f"I look.\n{returned.note}"), reason
        assert reason in returned.note
    finished = Family([spawns("Look."), submits("found it"), says("done")])
    finished.run()
    assert finished.results == ["found it"]


def test_what_a_child_spends_is_its_parents() -> None:
    family = Family([spawns("Look."), calls("a"), says("found it")], Limits(cost_limit=1.4))
    assert family.run().exit_status is ExitStatus.COST_LIMIT
    assert (family.agent.stats().cost_usd, family.agent.stats().tool_calls) == (1.5, 2)
    of_answers = Family([spawns("Look."), calls("a"), calls("b")], Limits(max_iterations=3))
    assert of_answers.run().exit_status is ExitStatus.MAX_ITERATIONS


def test_a_childs_call_waits_for_a_person_as_its_parents_would_under_an_id_of_its_own() -> None:
    same_id = {"tool_calls": [{"id": "call_0_0", "name": "echo", "arguments": {"text": "a"}}]}
    family = Family([spawns("Look."), same_id, says("found it"), says("done")])
    family.toolbox.children = replace(family.toolbox.children, approvals=AskingFor("all"))
    family.controls.rulings = {"call_0_0_2": Ruling(approved=True)}
    family.run()
    asked = [body.call_id for body in family.recorder.bodies if body.kind == "approval"]
    assert asked == ["call_0_0_2"]
    assert len(family.toolbox.ran) == 1


def test_no_person_is_asked_about_a_call_that_a_child_may_not_make() -> None:
    for call in (calls("a"), spawns("Look deeper.")):
        family = Family([spawns("Look.", tools=["submit"]), call, says("could not"), says("done")])
        family.toolbox.children = replace(family.toolbox.children, approvals=AskingFor("all"))
        family.controls.rulings = {"call_1_0": Ruling(approved=True)}
        family.run()
        assert family.children[3]["is_error"]
        assert "approval" not in family.kinds


def test_what_people_say_meanwhile_is_for_the_parent() -> None:
    family = Family([spawns("Look."), calls("a"), says("found it"), says("done"), says("really done")])
    family.toolbox.on_call = lambda _: (
        family.controls.to_steer.append("Be quick."),
        family.controls.to_follow_up.append("And then?"),
    )
    family.run()
    assert [m.content for m in family.agent.transcript if m.role == "user"][1:] == ["Be quick.", "And then?"]
    assert {"Be quick.", "And then?"}.isdisjoint(step.get("text") for step in family.children)


def test_a_message_that_interrupts_a_child_ends_it_wherever_it_comes_and_is_for_the_parent() -> None:
    def said() -> Interrupted:
        return Interrupted(Message(role="user", content="Forget that."))

    class BrokenOff(ScriptedModel):
        """While it waits for an answer, it asks the controls of the run itself, as the real one does."""

        def answer(self, *_: Any) -> Any:
            raise said()

    between, in_tool = (Family([spawns("Look."), calls("a"), says("done")]) for _ in range(2))
    between.toolbox.on_call = lambda _: setattr(between.controls, "signal", said())
    so_far = Message(role="tool", tool_call_id="call_1_0", content="so far")
    in_tool.toolbox.on_call = raising(Interrupted(so_far, *said().messages))
    in_answer = Family([spawns("Look."), says("done")])
    in_answer.toolbox.children = replace(in_answer.toolbox.children, model=BrokenOff([], in_answer.clock))
    for family in (between, in_tool, in_answer):
        assert family.run().response == "done"
        assert family.told[-2:] == [("user", "Forget that."), ("assistant", "done")]
        assert family.of_children.count("user") == 1
    assert in_tool.children[-1]["output"].startswith("so far")


class NoInside(NoGuardrails):
    def before(self, call: ToolCall) -> Verdict:
        return Verdict("halt", "not inside") if "inside" in call.arguments else Verdict()


def test_a_guardrail_that_halts_a_child_ends_the_run() -> None:
    family = Family([{**spawns("Look."), "text": "I let a child look."}, {**calls("inside"), "text": "I look."}])
    family.toolbox.children = replace(family.toolbox.children, guardrails=NoInside())
    outcome = family.run()
    assert (outcome.exit_status, outcome.response) == (ExitStatus.HALTED, "I let a child look.")
    assert (family.toolbox.ran, family.of_children[-1]) == ([], "tool_result")


def test_spending_that_is_in_no_answer_is_recorded_and_counted_once() -> None:
    recorder, budget = KeptEvents(), RunBudget(Limits(), HandClock())
    budget.on_apart = recorded_apart(recorder.record, "summary")
    budget.charge(Usage(input_tokens=5, cost_usd=0.25))
    budget.charge_apart(Usage(input_tokens=7, cost_usd=0.5))
    assert [body.kind for body in recorder.bodies] == ["charge"]
    assert (budget.stats().cost_usd, budget.stats().input_tokens, budget.iterations) == (0.75, 12, 1)
