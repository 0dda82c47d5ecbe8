"""At its limit of steps or time, a run that asks waits for a person, who raises the limit or lets the run end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from drone.agent.budget import RunBudget
from drone.agent.in_memory import QuietControls
from drone.agent.values import Ruling
from drone.runs.limit_question import RunLimitQuestion
from shared.errors import Interrupted
from shared.events import ApprovalStep, DecisionStep
from shared.messages import Message
from shared.outcome import ExitStatus
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.scripted import Loop, calls, says


@dataclass
class Answering(HandClock):
    """A clock by which a person answers what waits after a minute."""

    controls: QuietControls
    answers: dict[str, Ruling | BaseException]
    waited: float = 0.0

    def __post_init__(self) -> None:
        super().__init__()

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.waited += seconds
        if self.waited < 60 or not self.answers:
            return
        self.waited = 0.0
        name = next(iter(self.answers))
        given = self.answers.pop(name)
        if isinstance(given, Ruling):
            self.controls.rulings[name] = given
        else:
            self.controls.signal = given


def asking(answers: dict[str, Ruling | BaseException], script: list[Any], **limits: Any) -> Loop:
    controls = QuietControls()
    loop = Loop(script, limits=Limits(**limits), controls=controls, clock=Answering(controls, answers))
    budget = RunBudget(loop.limits, loop.clock)
    loop.agent = replace(loop.agent, budget=budget)
    loop.agent.at_limit = RunLimitQuestion(loop.recorder, controls, loop.clock, loop.limits.approval_timeout, budget)
    return loop


def asked(loop: Loop) -> list[tuple[str, str, str]]:
    steps = [body for body in loop.recorder.bodies if isinstance(body, ApprovalStep)]
    return [(step.call_id, step.limit, step.why) for step in steps]


def test_more_steps_let_the_run_finish() -> None:
    loop = asking(
        {"steps-1": Ruling(approved=True, raise_steps=1)}, [calls("a"), calls("b"), says("ok")], max_iterations=2
    )
    assert loop.run().response == "ok"
    assert asked(loop) == [("steps-1", "steps", "The limit of 2 steps is reached")]


def test_without_an_amount_the_limit_is_doubled_and_asked_for_again_when_that_is_used_up() -> None:
    answers: dict[str, Ruling | BaseException] = {
        "steps-1": Ruling(approved=True),
        "steps-2": Ruling(approved=False),
    }
    loop = asking(answers, [calls(str(number)) for number in range(5)], max_iterations=2)
    outcome = loop.run()
    assert (outcome.exit_status, outcome.succeeded) == (ExitStatus.MAX_ITERATIONS, True)
    assert [why for _, _, why in asked(loop)] == ["The limit of 2 steps is reached", "The limit of 4 steps is reached"]
    decided = [body for body in loop.recorder.bodies if isinstance(body, DecisionStep)]
    assert (decided[-1].about, decided[-1].approved, decided[-1].by) == ("limit", False, "person")


def test_unanswered_the_run_ends_as_it_would_have_and_other_limits_are_not_asked_about() -> None:
    loop = asking({}, [calls("a"), says("never")], max_iterations=1, approval_timeout=120)
    assert loop.run().exit_status is ExitStatus.MAX_ITERATIONS
    (decided,) = [body for body in loop.recorder.bodies if isinstance(body, DecisionStep)]
    assert (decided.about, decided.approved, decided.by) == ("limit", False, "clock")
    of_tokens = asking({}, [calls("a", usage={"input_tokens": 5}), says("never")], token_limit=1)
    assert of_tokens.run().exit_status is ExitStatus.TOKEN_LIMIT
    reminded = asking({}, [calls("a"), says("ok")], max_iterations=9)
    assert reminded.agent.budget is not None
    with reminded.agent.budget.at_most(1):
        assert reminded.run().exit_status is ExitStatus.MAX_ITERATIONS
    assert asked(of_tokens) == asked(reminded) == []


def test_more_time_lets_the_run_continue_and_the_wait_costs_none_of_it() -> None:
    loop = asking({"time-1": Ruling(approved=True, raise_seconds=30)}, [calls("a"), says("ok")], max_run_seconds=10)
    loop.toolbox.execute = _taking(loop, 11)  # type: ignore[method-assign]
    assert loop.run().response == "ok"
    assert asked(loop) == [("time-1", "time", "The time limit of 10 s is reached")]


def test_a_message_that_interrupts_the_wait_is_read_once_there_are_steps_again() -> None:
    message = Interrupted(Message(role="user", content="Only the tests."))
    answers = {"a message": message, "steps-2": Ruling(approved=True)}
    loop = asking(answers, [calls("a"), says("ok")], max_iterations=1)
    assert loop.run().response == "ok"
    assert ("user", "Only the tests.") in loop.told
    assert [name for name, _, _ in asked(loop)] == ["steps-1", "steps-2"]


def _taking(loop: Loop, seconds: float) -> Any:
    """The tool's execution, which takes that long."""
    execute = loop.toolbox.execute

    def slowly(call: Any) -> Any:
        HandClock.sleep(loop.clock, seconds)
        return execute(call)

    return slowly
