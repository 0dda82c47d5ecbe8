"""The way of one call: guardrails, hooks and people before it, a question in it, and what becomes of its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from drone.agent.approvals import AskingFor
from drone.agent.calls import in_words
from drone.agent.in_memory import EchoToolbox, KeptEvents, NoGuardrails, NoHooks, QuietControls
from drone.agent.values import AskedQuestion, Ruling, ToolResult, Verdict
from shared.errors import Conflict, Interrupted, Preempted
from shared.events import ApprovalStep, DecisionStep, GuardrailStep, ToolResultStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.scripted import Loop, calls, says


@dataclass
class Ruled(NoGuardrails):
    """Guardrails that say one thing before each call, and one thing after it."""

    first: Verdict = field(default_factory=Verdict)
    then: Verdict = field(default_factory=Verdict)

    def before(self, _call: ToolCall) -> Verdict:
        return self.first

    def after(self, _call: ToolCall, _result: ToolResult) -> Verdict:
        return self.then


class Blocking(NoHooks):
    def block(self, _call: ToolCall) -> str | None:
        return "not on Sundays"


QUESTION = AskedQuestion("Which database?", ("PostgreSQL", "SQLite"), "SQLite", 60)


PLAIN = AskedQuestion("Which name?")


@dataclass
class Asking(EchoToolbox):
    """Its tool asks a question."""

    question: AskedQuestion = QUESTION

    def __post_init__(self) -> None:
        super().__init__()

    def execute(self, call: ToolCall) -> ToolResult:
        super().execute(call)
        return ToolResult("", asks=self.question)


@dataclass
class Person(HandClock):
    """A clock by which a person does something after so many seconds."""

    controls: QuietControls
    after: float
    given: Ruling | BaseException | None
    waited: float = field(default=0.0)

    def __post_init__(self) -> None:
        super().__init__()

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.waited += seconds
        if self.waited < self.after or self.given is None:
            return
        if isinstance(self.given, Ruling):
            self.controls.rulings["call_0_0"] = self.given
        else:
            self.controls.signal, self.given = self.given, None


def answer(text: str, who: str = "kim") -> Ruling:
    return Ruling(approved=True, answer=text, who=who)


def asking(given: Ruling | BaseException | None, question: AskedQuestion = QUESTION, **limits: Any) -> Loop:
    """A loop that asks, and a person who does something after 30 s."""
    controls = QuietControls()
    clock = Person(controls, 30, given)
    toolbox = Asking(question)
    return Loop([calls("a"), says("done")], limits=Limits(**limits), controls=controls, clock=clock, toolbox=toolbox)


def result(loop: Loop) -> ToolResultStep:
    (found,) = [body for body in loop.recorder.bodies if isinstance(body, ToolResultStep)]
    return found


def decision(loop: Loop) -> DecisionStep:
    (found,) = [body for body in loop.recorder.bodies if isinstance(body, DecisionStep)]
    return found


def test_the_answer_is_the_result_of_the_call_with_who_gave_it() -> None:
    told = {
        "kim chose: PostgreSQL": answer("PostgreSQL"),
        "kim answered: MySQL 8": answer("MySQL 8"),
        "The user chose: SQLite": answer("SQLite", ""),
    }
    for text, given in told.items():
        loop = asking(given)
        # No question waits for an approval.
        loop.agent.approvals = AskingFor("all", read_only={"echo"})
        loop.run()
        assert (result(loop).output, result(loop).is_error, result(loop).execution) == (text, False, "answered")
        assert (decision(loop).answer, decision(loop).who, decision(loop).by) == (given.answer, given.who, "person")
    (asked,) = [body for body in loop.recorder.bodies if isinstance(body, ApprovalStep)]
    assert (asked.about, asked.why, asked.choices, asked.default) == (
        "question",
        QUESTION.text,
        QUESTION.choices,
        QUESTION.default,
    )
    assert asked.until is not None
    assert "person" in loop.recorder.waited_for


def test_after_the_deadline_the_default_counts_and_the_wait_costs_no_run_time() -> None:
    loop = asking(None, max_run_seconds=10)
    assert loop.run().response == "done"
    assert result(loop).output == "No answer: not answered within 60 s. The default counts: SQLite"
    assert (decision(loop).approved, decision(loop).by, decision(loop).answer) == (True, "clock", "SQLite")


def test_an_interruption_or_the_end_of_the_run_ends_the_wait() -> None:
    loop = asking(Interrupted(Message(role="user", content="Never mind.")))
    loop.run()
    assert (decision(loop).by, decision(loop).approved) == ("interruption", False)
    assert ("user", "Never mind.") in loop.told
    ended = asking(Preempted())
    with pytest.raises(Preempted):
        ended.run()
    assert decision(ended).by == "interruption"


def test_without_a_default_the_model_is_told_that_no_answer_came() -> None:
    loop = asking(None, PLAIN, approval_timeout=120)
    loop.run()
    assert "not answered within 120 s" in result(loop).output
    assert (decision(loop).approved, decision(loop).by, decision(loop).answer) == (False, "clock", "")
    shorter = asking(None, approval_timeout=40)
    shorter.run()
    assert "not answered within 40 s" in result(shorter).output


def waiting(given: Ruling | BaseException, after: float = 100.0, **limits: float) -> Loop:
    """A loop whose calls all wait for a person, who answers after so many seconds."""
    controls = QuietControls()
    clock = Person(controls, after, given)
    loop = Loop([calls("a"), says("done")], limits=Limits(**limits), controls=controls, clock=clock)
    loop.agent.approvals = AskingFor("all")
    return loop


def results(loop: Loop) -> list[str]:
    return [body.output for body in loop.recorder.bodies if isinstance(body, ToolResultStep)]


def test_a_call_that_is_denied_unanswered_or_interrupted_is_not_run() -> None:
    stop = Interrupted(Message(role="user", content="Stop that."))
    denied = waiting(Ruling(approved=False, comment="use the script"))
    late = waiting(Ruling(approved=True), after=7200.0, approval_timeout=3600)
    interrupted = waiting(stop)
    for loop in (denied, late, interrupted):
        assert loop.run().response == "done"
        assert loop.toolbox.ran == []
    decided = [next(b for b in loop.recorder.bodies if b.kind == "decision") for loop in (denied, late, interrupted)]
    assert [(step.approved, step.by) for step in decided] == [
        (False, "person"),
        (False, "clock"),
        (False, "interruption"),
    ]
    assert results(denied) == ["This call was not approved: use the script"]
    assert results(late) == ["This call was not approved: not answered within 3600 s"]
    assert next(body for body in late.recorder.bodies if isinstance(body, ApprovalStep)).until is not None
    assert ("user", "Stop that.") in interrupted.told


def test_a_warning_stands_below_the_result_and_is_recorded() -> None:
    loop = Loop([calls("a"), says("done")])
    loop.agent.guardrails = Ruled(
        Verdict("warn", "Again?", "code_1", "loops"), Verdict("warn", "Slow.", "code_2", "time")
    )
    loop.run()
    assert results(loop) == ["a\n\n[Again?]\n\n[Slow.]"]
    assert [body.note for body in loop.recorder.bodies if isinstance(body, ToolResultStep)] == [
        "\n\n[Again?]\n\n[Slow.]"
    ]
    recorded = [body for body in loop.recorder.bodies if isinstance(body, GuardrailStep)]
    assert [(body.guardrail, body.action, body.code) for body in recorded] == [
        ("loops", "warn", "code_1"),
        ("time", "warn", "code_2"),
    ]


def test_a_hook_that_blocks_goes_before_the_guardrails() -> None:
    loop = Loop([calls("a"), says("done")])
    loop.agent.hooks = Blocking()
    loop.agent.guardrails = Ruled(Verdict("halt", "never asked", "c", "g"))
    loop.run()
    assert results(loop) == ["This call was blocked: not on Sundays"]


def test_an_approved_call_is_run_and_the_wait_does_not_count() -> None:
    loop = waiting(Ruling(approved=True, comment="go"), max_run_seconds=60)
    outcome = loop.run()
    assert outcome.exit_status is ExitStatus.STOPPED
    assert [call.name for call in loop.toolbox.ran] == ["echo"]
    assert [body.kind for body in loop.recorder.bodies[2:6]] == ["tool_call", "approval", "decision", "tool_result"]
    assert loop.agent.stats().duration_ms < 1000
    assert loop.clock.monotonic() >= 100
    assert loop.recorder.waited_for == ["", "person", "", ""]


def test_a_busy_agent_takes_no_other_turn() -> None:
    recorder = KeptEvents()
    toolbox = EchoToolbox(lambda _: loop.agent.run("x", (), "again"))
    loop = Loop([calls("a")], recorder=recorder, toolbox=toolbox)
    with pytest.raises(Conflict, match=r"the agent is busy \(phase: turn\)"):
        loop.run()
    assert loop.agent.phase == "idle"


def test_a_call_in_words_names_what_it_is_pointed_at() -> None:
    words = {
        '{"command": "npm test"}': "shell: npm test",
        '{"path": "a.py", "text": "x"}': "shell: a.py",
        '{"url": "https://example.org/"}': "shell: https://example.org/",
        '{"command": 7}': "running shell",
        "[]": "running shell",
        "{": "running shell",
    }
    assert {given: in_words(ToolCall(id="c", name="shell", arguments=given)) for given in words} == words
