"""At a limit of money, steps or time, a run that asks waits for a person, who raises it or lets the run end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.in_memory import KeptEvents, QuietControls
from drone.agent.values import Ruling
from drone.runs.limit_question import LimitQuestion, RunLimitQuestion, limit_question
from drone.runs.purse import MoneyUsedUp, Purse
from shared.budgets import Money
from shared.errors import Interrupted, Suspended
from shared.events import ApprovalStep, DecisionStep
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.people import Person
from tests.support.runs import order_for
from tests.support.scripted import Loop, calls, says, submits

# --- money ---------------------------------------------------------------------------------------


def about_money(
    answer: Ruling | None, about: str = "limit", budget: RunBudget | None = None, clock: HandClock | None = None
) -> tuple[Purse, KeptEvents]:
    """A run that has spent its limit of one dollar, and was asked about it."""
    purse, recorder = Purse(1.0, 1.0, None, Money()), KeptEvents()
    question = LimitQuestion(recorder, clock or HandClock(), 60, budget)
    question.ask(MoneyUsedUp(about, "used up", 0.1), purse, lambda _: answer, lambda: None)
    return purse, recorder


def test_an_approval_raises_the_limit_and_not_a_budget_and_anything_else_stops_the_run() -> None:
    assert about_money(Ruling(approved=True, raise_usd=0.5))[0].limit == 1.5
    assert about_money(Ruling(approved=True))[0].limit == 2.0
    purse, recorder = about_money(Ruling(approved=True), about="budget")
    assert purse.limit == 1.0
    assert [body.kind for body in recorder.bodies] == ["approval", "decision"]
    with pytest.raises(MoneyUsedUp):
        about_money(Ruling(approved=False))
    # Nobody answers: the wait is not part of the run's time.
    clock = HandClock()
    budget = RunBudget(Limits(max_run_seconds=10), clock)
    clock.sleep(5)
    budget.start()
    clock.sleep(4)
    with pytest.raises(MoneyUsedUp):
        about_money(None, budget=budget, clock=clock)
    assert clock.passed >= 69
    assert budget.spent().seconds == pytest.approx(4)


def test_finishing_allows_one_more_answer_with_a_summary() -> None:
    purse, budget = Purse(1.0, 1.0, None, Money()), RunBudget(Limits(), HandClock())
    question = LimitQuestion(KeptEvents(), HandClock(), 60, budget)
    assert not question.count_call()
    used_up = MoneyUsedUp("limit", "used up", 0.1)
    with pytest.raises(Interrupted) as summary:
        question.ask(used_up, purse, lambda _: Ruling(approved=False, finish=True), lambda: None)
    assert "summary" in summary.value.messages[0].content
    assert purse.limit == pytest.approx(1.1)
    assert budget.ends_with is used_up.outcome
    question.check_calls()
    assert question.count_call()
    with pytest.raises(MoneyUsedUp):
        question.check_calls()
    with pytest.raises(MoneyUsedUp):
        question.ask(used_up, purse, lambda _: Ruling(approved=True), lambda: None)


def test_the_summary_of_a_parent_is_made_although_it_costs_more_than_the_childs_call_that_met_the_limit() -> None:
    purse, question = Purse(1.0, 1.0, None, Money()), LimitQuestion(KeptEvents(), HandClock(), 60, None)
    finish = Ruling(approved=False, finish=True)
    with pytest.raises(Interrupted):
        question.ask(MoneyUsedUp("limit", "used up", 0.1), purse, lambda _: finish, lambda: None)
    question.ask(MoneyUsedUp("limit", "used up", 0.4), purse, lambda _: None, lambda: None)
    assert purse.limit == pytest.approx(1.5)
    for other in (MoneyUsedUp("budget", "used up", 0.1), MoneyUsedUp("limit", "for a model that costs nothing")):
        with pytest.raises(MoneyUsedUp):
            question.ask(other, purse, lambda _: None, lambda: None)
    assert question.count_call()
    with pytest.raises(MoneyUsedUp):
        question.check_calls()


def test_a_denial_holds_for_every_later_call_of_the_run_such_as_that_of_a_parent_after_its_child() -> None:
    recorder, purse, used_up = KeptEvents(), Purse(1.0, 1.0, None, Money()), MoneyUsedUp("limit", "used up", 0.1)
    question = LimitQuestion(recorder, HandClock(), 60, None)
    with pytest.raises(MoneyUsedUp):
        question.ask(used_up, purse, lambda _: Ruling(approved=False), lambda: None)
    with pytest.raises(MoneyUsedUp):
        question.check_calls()
    with pytest.raises(MoneyUsedUp):
        question.ask(used_up, purse, lambda _: Ruling(approved=True), lambda: None)
    assert [body.kind for body in recorder.bodies] == ["approval", "decision"]


def test_a_run_that_finishes_ends_at_its_cost_limit_with_the_summary_as_its_response() -> None:
    for answer in (says("Half done."), submits("Half done.")):
        budget = RunBudget(Limits(), HandClock())
        with pytest.raises(Interrupted):
            about_money(Ruling(approved=False, finish=True), budget=budget)
        loop = Loop([answer])
        loop.agent = replace(loop.agent, budget=budget)
        assert loop.run() == Outcome(ExitStatus.COST_LIMIT, "used up", "Half done.")


def test_a_run_that_declines_to_be_suspended_asks_about_money_under_the_same_id() -> None:
    purse, controls = Purse(1.0, 1.0, None, Money()), QuietControls()
    clock = Person(controls, {"the slot is needed": Suspended(), "money-1": Ruling(approved=True, raise_usd=0.5)})
    question, used_up = LimitQuestion(KeptEvents(), clock, 600, None), MoneyUsedUp("limit", "used up", 0.1)
    with pytest.raises(Suspended):
        question.ask(used_up, purse, controls.ruling, controls.check)
    question.ask(used_up, purse, controls.ruling, controls.check)
    assert purse.limit == 1.5


def test_only_an_order_that_asks_has_a_question() -> None:
    controls = BudgetedControls(QuietControls(), RunBudget(Limits(), HandClock()))
    stops, asks = (order_for("oka", Path("/r"), "", money=Money(on_limit=on_limit)) for on_limit in ("stop", "ask"))
    assert limit_question(stops, KeptEvents(), controls, HandClock()) is None
    assert limit_question(asks, KeptEvents(), controls, HandClock()) is not None
    assert controls.budget.asks


# --- steps and time ------------------------------------------------------------------------------


Answers = dict[str, Ruling | BaseException]


def asking(answers: Answers, script: list[Any], **limits: Any) -> Loop:
    controls = QuietControls()
    loop = Loop(script, limits=Limits(**limits), controls=controls, clock=Person(controls, answers))
    budget = RunBudget(loop.limits, loop.clock)
    loop.agent = replace(loop.agent, budget=budget)
    loop.agent.at_limit = RunLimitQuestion(loop.recorder, controls, loop.clock, loop.limits.approval_timeout, budget)
    return loop


def asked(loop: Loop) -> list[tuple[str, str, str]]:
    steps = [body for body in loop.recorder.bodies if isinstance(body, ApprovalStep)]
    return [(step.call_id, step.limit, step.why) for step in steps]


def decided(loop: Loop) -> tuple[str, bool, str]:
    """The last decision."""
    step = [body for body in loop.recorder.bodies if isinstance(body, DecisionStep)][-1]
    return step.about, step.approved, step.by


def test_more_steps_let_the_run_finish() -> None:
    answers: Answers = {"steps-1": Ruling(approved=True, raise_steps=1)}
    loop = asking(answers, [calls("a"), calls("b"), says("ok")], max_iterations=2)
    assert loop.run().response == "ok"
    assert asked(loop) == [("steps-1", "steps", "The limit of 2 steps is reached")]


def test_without_an_amount_the_limit_is_doubled_and_asked_for_again_when_that_is_used_up() -> None:
    answers: Answers = {"steps-1": Ruling(approved=True), "steps-2": Ruling(approved=False)}
    loop = asking(answers, [calls(str(number)) for number in range(5)], max_iterations=2)
    outcome = loop.run()
    assert (outcome.exit_status, outcome.succeeded) == (ExitStatus.MAX_ITERATIONS, True)
    assert [why for _, _, why in asked(loop)] == ["The limit of 2 steps is reached", "The limit of 4 steps is reached"]
    assert decided(loop) == ("limit", False, "person")


def test_unanswered_the_run_ends_as_it_would_have_and_other_limits_are_not_asked_about() -> None:
    loop = asking({}, [calls("a"), says("never")], max_iterations=1, approval_timeout=120)
    assert loop.run().exit_status is ExitStatus.MAX_ITERATIONS
    assert decided(loop) == ("limit", False, "clock")
    of_tokens = asking({}, [calls("a", usage={"input_tokens": 5}), says("never")], token_limit=1)
    assert of_tokens.run().exit_status is ExitStatus.TOKEN_LIMIT
    reminded = asking({}, [calls("a"), says("ok")], max_iterations=9)
    assert reminded.agent.budget is not None
    with reminded.agent.budget.at_most(1):
        assert reminded.run().exit_status is ExitStatus.MAX_ITERATIONS
    assert asked(of_tokens) == asked(reminded) == []


def test_more_time_lets_the_run_continue_and_the_wait_costs_none_of_it() -> None:
    loop = asking({"time-1": Ruling(approved=True, raise_seconds=30)}, [calls("a"), says("ok")], max_run_seconds=10)
    loop.toolbox.on_call = lambda _: HandClock.sleep(loop.clock, 11)
    assert loop.run().response == "ok"
    assert asked(loop) == [("time-1", "time", "The time limit of 10 s is reached")]


def test_a_message_that_interrupts_the_wait_is_read_once_there_are_steps_again() -> None:
    message = Interrupted(Message(role="user", content="Only the tests."))
    answers = {"a message": message, "steps-2": Ruling(approved=True)}
    loop = asking(answers, [calls("a"), says("ok")], max_iterations=1)
    assert loop.run().response == "ok"
    assert ("user", "Only the tests.") in loop.told
    assert [name for name, _, _ in asked(loop)] == ["steps-1", "steps-2"]


def test_a_run_that_declines_to_be_suspended_asks_under_the_same_id() -> None:
    answers = {"the slot is needed": Suspended(), "steps-1": Ruling(approved=True)}
    loop = asking(answers, [calls("a"), says("ok")], max_iterations=1)
    assert loop.run().response == "ok"
    assert [name for name, _, _ in asked(loop)] == ["steps-1", "steps-1"]
