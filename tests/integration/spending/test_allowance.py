"""What runs are granted, on each kind of database: never more than their budgets hold, and nothing stays reserved."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.declarations.prices import PriceRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations import prices
from control_plane.spending.settlement import money_of, settle_forgotten
from shared.budgets import ModelPrice
from shared.errors import Conflict, NotFound
from tests.support.budgets import Money
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import later, make_drone


@pytest.fixture
def any_money(core: Core, admin: Caller) -> Money:
    """Once on each kind of database."""
    return Money.of(core, admin)


@pytest.fixture
def money(core_factory: CoreFactory, sqlite_url: str, clock: HandClock) -> Money:
    core = core_factory(sqlite_url, clock=clock)
    return Money.of(core, system_caller(core))


def test_a_run_is_granted_what_it_wants_while_its_budget_holds_much_more(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    answer = money.ask(run, 0.5, wanted=1.0)
    assert (answer.granted, answer.bounded, answer.refused) == (1.0, True, "")
    assert money.counted(budget) == (1.0, 0.0)


def test_no_run_reserves_much_more_than_its_order_may_cost(money: Money) -> None:
    money.budget(1_000)
    assert money.ask(money.run(), 0.5, wanted=1e6).granted == 11.0


def test_near_the_end_a_run_is_granted_one_call_at_a_time(money: Money) -> None:
    money.budget(1.0)
    assert money.ask(money.run(), 0.5, wanted=1.0).granted == 0.5


def test_a_repeated_request_is_granted_once(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    first, second = (money.ask(run, 0.5, number=number) for number in (1, 2))
    assert (first, money.counted(budget)) == (second, (0.5, 0.0))


def test_a_request_that_arrives_after_a_later_one_has_no_effect(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    money.ask(run, 0.5, number=1), money.ask(run, 0.9, spent=0.4, number=3)
    late = money.ask(run, 0.4, spent=0.4, keep=0.4, number=2)
    assert (late.granted, money.counted(budget)) == (0.9, (0.5, 0.4))


def test_what_was_spent_is_no_longer_reserved_and_is_counted_once(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    money.ask(run, 0.5)
    for _ in range(2):
        money.ask(run, 0.9, spent=0.4)
    assert money.counted(budget) == (0.5, 0.4)


def test_a_run_waits_while_others_have_reserved_what_is_left_and_is_refused_when_it_is_spent(money: Money) -> None:
    money.budget(1.0)
    one, other = money.run(), money.run()
    money.ask(one, 0.8)
    waits = money.ask(other, 0.5)
    assert (waits.granted, waits.wait_s, waits.refused) == (0.0, 1.0, "")
    assert "$0.80 reserved" in waits.waits_for
    money.end(one, 0.7)
    refused = money.ask(other, 0.5)
    assert refused.wait_s is None
    assert "fleet budget set project web USD --per total" in refused.refused


def test_a_waiting_run_gives_back_what_it_does_not_use(money: Money) -> None:
    budget = money.budget(1.0)
    one, other = money.run(), money.run()
    money.ask(one, 0.4), money.ask(other, 0.4)
    assert money.ask(one, 0.7, keep=0.0).wait_s is not None
    assert money.counted(budget) == (0.4, 0.0)
    assert money.ask(other, 0.7, keep=0.0).granted == 0.7


def test_every_budget_that_applies_bounds_the_run_and_the_answer_names_the_one_that_is_used_up(money: Money) -> None:
    project, organization = money.budget(10), money.budget(0.3, kind="organization")
    run = money.run()
    assert "The budget of organization default has too little left" in money.ask(run, 0.5).refused
    assert money.ask(run, 0.2).granted == 0.2
    assert (money.counted(project), money.counted(organization)) == ((0.2, 0.0), (0.2, 0.0))


def test_the_end_of_a_run_frees_what_it_did_not_spend(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    money.ask(run, 0.5, wanted=2.0)
    money.end(run, 0.3)
    assert money.counted(budget) == (0.0, 0.3)
    with pytest.raises(Conflict):
        money.ask(run, 3.0)


def test_a_lost_run_counts_with_all_it_held_until_its_drone_reports_what_it_cost(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    money.ask(run, 0.5, wanted=2.0)
    money.lose(run, heard=0.3)
    assert (money.counted(budget), money.assumed(run)) == ((0.0, 2.0), pytest.approx(1.7))
    assert money.of_runs() == pytest.approx(2.0)
    money.end(run, 0.4)
    assert (money.counted(budget), money.assumed(run)) == ((0.0, 0.4), 0.0)
    assert money.of_runs() == pytest.approx(0.4)


def test_what_a_lost_run_may_have_spent_counts_against_its_orders_limit(money: Money) -> None:
    run = money.run()
    money.budget(10)
    money.ask(run, 2.0)
    money.lose(run, heard=0.3)
    with money.core.database.read() as db:
        assert money_of(db, money.order_of(run)).spent == pytest.approx(2.0)


def test_the_limit_of_an_order_counts_anew_when_a_person_retries_or_resumes_it(money: Money) -> None:
    for column in ("fresh_generation", "renewed_generation"):
        run = money.run()
        money.lose(run, heard=0.3)
        with money.core.database.write() as db:
            order = db.get_one(Order, money.order_of(run).id)
            assert money_of(db, order).spent == pytest.approx(0.3)
            setattr(order, column, order.generation)
            assert money_of(db, order).spent == 0.0


def test_a_new_budget_counts_what_was_spent_and_reserved_before_it(money: Money) -> None:
    one, other = money.run(), money.run()
    money.ask(one, 0.5), money.ask(other, 0.25, wanted=0.25)
    money.end(one, 0.4)
    assert money.counted(money.budget(1.0)) == (0.25, 0.4)


def test_a_budget_lowered_below_what_is_spent_grants_nothing_more(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    money.ask(run, 2.0)
    money.lower(budget, 1.0)
    answer = money.ask(run, 2.5, spent=1.5)
    assert (answer.granted, answer.wait_s) == (2.0, None)
    assert "$1.00 in total, $1.50 spent, $0.50 reserved" in answer.refused


def test_money_counts_on_the_day_on_which_it_was_reserved(money: Money) -> None:
    budget, run = money.budget(1.0, per="day"), money.run()
    money.ask(run, 0.8)
    later(money.core, hours=12)
    assert money.ask(run, 1.6, spent=0.8).granted == 1.6
    assert money.counted(budget) == (0.8, 0.0)
    money.end(run, 1.0)
    assert money.counted(budget) == (0.0, pytest.approx(0.2))


def test_a_clock_that_is_set_back_makes_no_money(money: Money) -> None:
    money.budget(1.0, per="day")
    run = money.run()
    money.ask(run, 0.9)
    later(money.core, hours=13)
    money.ask(run, 1.8, spent=0.9)
    money.core.clock.sleep(-timedelta(hours=13).total_seconds())
    assert money.ask(money.run(), 0.2).refused != ""


def test_a_model_without_a_price_is_refused_where_a_budget_applies(money: Money) -> None:
    run = money.run()
    assert money.ask(run, 0.0, priced=False).refused == ""
    money.budget(1.0)
    assert "fleet price set openai/x --input USD --output USD" in money.ask(run, 0.0, priced=False).refused


def test_a_price_that_is_set_during_a_run_reaches_it_with_the_next_answer(money: Money) -> None:
    run = money.run()
    assert money.ask(run, 0.1).prices == ()
    prices.set_(money.core, money.admin, "openai/scripted", PriceRequest(input_usd=1.0, output_usd=2.0))
    (price,) = money.ask(run, 0.1).prices
    assert (price.model, price.input, price.output) == ("openai/scripted", 1e-6, 2e-6)


def test_a_run_keeps_the_price_that_it_was_charged_at(money: Money) -> None:
    run = money.run()
    charged = ModelPrice(model="openai/x", input=1e-6, output=2e-6, discount=10)
    money.ask(run, 0.1, price=charged.model_dump())
    with money.core.database.read() as db:
        kept = db.get_one(Run, run).prices
    assert kept is not None
    assert ModelPrice.model_validate(kept["openai/x"]) == charged


def test_blocks_of_a_dispatch_that_was_closed_without_a_word_about_money_are_settled(money: Money) -> None:
    from control_plane.db.orders import Dispatch

    budget, run = money.budget(10), money.run()
    money.ask(run, 0.5)
    with money.core.database.write() as db:
        db.get_one(Dispatch, run).closed_at = money.core.clock.now()
    later(money.core, seconds=61)
    with money.core.database.write() as db:
        assert settle_forgotten(db, money.core) == 1
        assert settle_forgotten(db, money.core) == 0
    assert money.counted(budget) == (0.0, 0.5)


def test_another_drones_run_cannot_be_given_money(money: Money) -> None:
    run = money.run()
    stranger = Money(money.core, money.admin, make_drone(money.core, money.admin, "berta"))
    with pytest.raises(NotFound):
        stranger.ask(run, 0.5)


def test_absurd_amounts_are_counted_without_an_error(any_money: Money) -> None:
    any_money.budget(10)
    run = any_money.run()
    any_money.ask(run, 0.5, spent=1e9)
    any_money.end(run, 1e9)
    assert any_money.ask(any_money.run(), 0.1).refused != ""


def test_requests_at_the_same_moment_are_never_granted_more_than_the_budget(any_money: Money) -> None:
    budget = any_money.budget(1.0)
    runs = [any_money.run() for _ in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda run: any_money.ask(run, 0.3), runs))
    assert sum(answer.granted for answer in answers) == pytest.approx(0.9)
    assert any_money.counted(budget) == (pytest.approx(0.9), 0.0)
