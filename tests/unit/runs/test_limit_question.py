"""At the limit of its money, an order that asks waits for a person, who raises it, stops it or lets it finish."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.in_memory import KeptEvents, QuietControls
from drone.agent.values import Ruling
from drone.runs.limit_question import LimitQuestion, limit_question
from drone.runs.purse import MoneyUsedUp, Purse
from shared.budgets import Money
from shared.errors import Interrupted
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.runs import order_for


def asked(answer: Ruling | None, about: str = "limit") -> tuple[Purse, KeptEvents, LimitQuestion]:
    """A run that has spent its limit of one dollar, and the question that was asked."""
    purse, recorder = Purse(1.0, 1.0, None, Money()), KeptEvents()
    question = LimitQuestion(recorder, HandClock(), 60, None)
    question.ask(MoneyUsedUp(about, "used up", 0.1), purse, lambda _: answer, lambda: None)
    return purse, recorder, question


def test_an_approval_raises_the_limit_and_not_a_budget_and_anything_else_stops_the_run() -> None:
    assert asked(Ruling(approved=True, raise_usd=0.5))[0].limit == 1.5
    assert asked(Ruling(approved=True))[0].limit == 2.0
    purse, recorder, _ = asked(Ruling(approved=True), about="budget")
    assert purse.limit == 1.0
    assert [body.kind for body in recorder.bodies] == ["approval", "decision"]
    for answer in (Ruling(approved=False), None):
        with pytest.raises(MoneyUsedUp):
            asked(answer)


def test_finishing_allows_one_more_answer_with_a_summary() -> None:
    purse, question = Purse(1.0, 1.0, None, Money()), LimitQuestion(KeptEvents(), HandClock(), 60, None)
    used_up = MoneyUsedUp("limit", "used up", 0.1)
    with pytest.raises(Interrupted) as summary:
        question.ask(used_up, purse, lambda _: Ruling(approved=False, finish=True), lambda: None)
    assert "summary" in summary.value.messages[0].content
    assert purse.limit == pytest.approx(1.1)
    question.next_call()
    with pytest.raises(MoneyUsedUp):
        question.next_call()
    with pytest.raises(MoneyUsedUp):
        question.ask(used_up, purse, lambda _: Ruling(approved=True), lambda: None)


def test_the_wait_for_the_answer_is_not_part_of_the_runs_time() -> None:
    clock = HandClock()
    budget = RunBudget(Limits(max_run_seconds=10), clock)
    budget.start()
    with pytest.raises(MoneyUsedUp):
        LimitQuestion(KeptEvents(), clock, 60, budget).ask(
            MoneyUsedUp("limit", "used up"), Purse(1.0, 1.0, None, Money()), lambda _: None, lambda: None
        )
    assert clock.passed >= 60
    budget.check()


def test_only_an_order_that_asks_has_a_question() -> None:
    controls = BudgetedControls(QuietControls(), RunBudget(Limits(), HandClock()))
    stops, asks = (order_for("oka", Path("/r"), "", money=Money(on_limit=on_limit)) for on_limit in ("stop", "ask"))
    assert limit_question(stops, KeptEvents(), controls, HandClock()) is None
    assert limit_question(asks, KeptEvents(), controls, HandClock()) is not None
    assert controls.budget.asks
