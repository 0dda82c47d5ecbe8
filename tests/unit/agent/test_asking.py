"""A question of the model: the loop waits for the answer, which becomes the result of the call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from drone.agent.approvals import AskingFor
from drone.agent.in_memory import EchoToolbox, QuietControls
from drone.agent.values import AskedQuestion, Ruling, ToolResult
from shared.errors import Interrupted, Preempted
from shared.events import ApprovalStep, DecisionStep, ToolResultStep
from shared.messages import Message, ToolCall
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.scripted import Loop, calls, says

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


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (answer("PostgreSQL"), "kim chose: PostgreSQL"),
        (answer("MySQL 8"), "kim answered: MySQL 8"),
        (answer("SQLite", ""), "The user chose: SQLite"),
    ],
)
def test_the_answer_is_the_result_of_the_call_with_who_gave_it(given: Ruling, told: str) -> None:
    loop = asking(given)
    loop.run()
    assert (result(loop).output, result(loop).is_error, result(loop).execution) == (told, False, "answered")
    assert (decision(loop).answer, decision(loop).who, decision(loop).by) == (given.answer, given.who, "person")


def test_the_question_is_recorded_with_its_choices_default_and_deadline() -> None:
    loop = asking(answer("SQLite"))
    loop.run()
    (asked,) = [body for body in loop.recorder.bodies if isinstance(body, ApprovalStep)]
    assert (asked.about, asked.why, asked.choices, asked.default) == (
        "question",
        "Which database?",
        ("PostgreSQL", "SQLite"),
        "SQLite",
    )
    assert asked.until is not None
    assert "person" in loop.recorder.waited_for


def test_after_the_deadline_the_default_counts() -> None:
    loop = asking(None)
    loop.run()
    assert result(loop).output == "No answer: not answered within 60 s. The default counts: SQLite"
    assert (decision(loop).approved, decision(loop).by, decision(loop).answer) == (True, "clock", "SQLite")


def test_without_a_default_the_model_is_told_that_no_answer_came() -> None:
    loop = asking(None, PLAIN, approval_timeout=120)
    loop.run()
    assert result(loop).output.startswith("No answer: not answered within 120 s. Decide yourself")
    assert (decision(loop).approved, decision(loop).by, decision(loop).answer) == (False, "clock", "")


def test_no_question_outlasts_what_the_order_allows() -> None:
    loop = asking(None, approval_timeout=40)
    loop.run()
    assert "not answered within 40 s" in result(loop).output


def test_the_wait_costs_no_run_time() -> None:
    loop = asking(None, max_run_seconds=10)
    assert loop.run().response == "done"


def test_a_question_waits_for_no_approval() -> None:
    loop = asking(answer("SQLite"))
    loop.agent.approvals = AskingFor("all", read_only={"echo"})
    loop.run()
    assert [body.about for body in loop.recorder.bodies if isinstance(body, ApprovalStep)] == ["question"]


def test_an_interruption_ends_the_wait_and_the_model_reads_the_message() -> None:
    loop = asking(Interrupted(Message(role="user", content="Never mind.")))
    loop.run()
    assert (decision(loop).by, decision(loop).approved) == ("interruption", False)
    assert ("user", "Never mind.") in loop.told


def test_a_run_that_has_to_end_stops_waiting() -> None:
    loop = asking(Preempted())
    with pytest.raises(Preempted):
        loop.run()
    assert decision(loop).by == "interruption"
