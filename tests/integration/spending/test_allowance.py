"""What runs are granted: never more than their budgets hold, and nothing stays reserved."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

import pytest
from sqlalchemy import func, select

from control_plane.contract.declarations.budgets import BudgetRequest
from control_plane.contract.declarations.prices import PriceRequest
from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.db.spending import BudgetPeriod
from control_plane.money.spending.settlement import money_of, run_reported, settle_forgotten
from control_plane.operations import budgets, prices
from control_plane.operations.runs.allowance import allow
from control_plane.orders.run_ends import RunEnding, close_run
from control_plane.telemetry.metrics.money import cost_metrics
from drone.runs.purse import MoneyAwaited, MoneyUsedUp, Need, Purse
from shared.amounts import charged, dollars, reserved
from shared.budgets import Allowance, AllowanceRequest, ModelPrice, Per
from shared.budgets import Money as MoneyOfRun
from shared.errors import Conflict, NotFound
from shared.states import RunStatus
from tests.support.made import later, make_drone, make_project, start_run, submit


@dataclass
class Money:
    """One project with a drone, whose runs spend."""

    core: Core
    admin: Caller
    drone: AuthenticatedDrone

    def budget(self, usd: float, *, per: Per = "total", kind: str = "project") -> str:
        """Set a budget of the project, or of its organization; its id."""
        name = {"project": "web", "organization": "default"}[kind]
        return budgets.set_(self.core, self.admin, kind, name, BudgetRequest(usd=usd, per=per)).id

    def run(self, **fields: object) -> str:
        return start_run(self.core, submit(self.core, self.admin, drone=self.drone.name).id, **fields)

    def ask(self, run_id: str, least: float, **more: object) -> Allowance:
        """What the run is granted; `least` and `wanted` are totals."""
        with self.core.database.read() as db:
            number = db.get_one(Dispatch, run_id).allowance_number + 1
        values = {"number": number, "model": "openai/x", "least": least, "wanted": least, **more}
        return allow(self.core, self.drone, run_id, AllowanceRequest.model_validate(values))

    def end(self, run_id: str, cost: float | None, to: RunStatus = RunStatus.SUCCESS) -> None:
        """The run reports its end, also after it was given up."""
        with self.core.database.write() as db:
            run, dispatch = db.get_one(Run, run_id), db.get_one(Dispatch, run_id)
            run.cost_usd = cost
            if run.status == RunStatus.RUNNING:
                close_run(db, self.core, dispatch, RunEnding(to, "stopped", ""))
            else:
                run_reported(db, self.core, dispatch, run)

    def lose(self, run_id: str, heard: float = 0.0) -> None:
        """The run is given up, after its events reported a cost."""
        with self.core.database.write() as db:
            db.get_one(Run, run_id).cost_usd = heard
            close_run(db, self.core, db.get_one(Dispatch, run_id), RunEnding(RunStatus.LOST, "lost", ""))

    def counted(self, budget_id: str) -> tuple[float, float]:
        """USD reserved and spent in the newest period of the budget."""
        with self.core.database.read() as db:
            rows = select(BudgetPeriod).where(BudgetPeriod.budget_id == budget_id)
            row = db.scalars(rows.order_by(BudgetPeriod.begins_at.desc())).first()
        return (dollars(row.reserved_nusd), dollars(row.spent_nusd)) if row else (0.0, 0.0)

    def metered(self) -> float:
        """USD that the metrics show for all models."""
        with self.core.database.read() as db:
            return sum(each.value for family in cost_metrics(db, defaultdict(str)) for each in family.samples)

    def of_runs(self) -> float:
        """USD that all runs have cost, with what is assumed of lost ones."""
        with self.core.database.read() as db:
            return float(db.scalar(select(func.sum(Run.cost_usd + Run.assumed_usd))) or 0.0)

    def counts(self, run_id: str, **order: int) -> float:
        """USD that count against the limit of the run's order; `order`: columns of it that are set first."""
        with self.core.database.write() as db:
            row = db.get_one(Order, db.get_one(Run, run_id).order_id)
            for name, value in order.items():
                setattr(row, name, value)
            return money_of(db, row).spent


@pytest.fixture
def money(core: Core, admin: Caller) -> Money:
    make_project(core, admin)
    return Money(core, admin, make_drone(core, admin, concurrency=64))


def test_a_run_is_granted_what_it_wants_up_to_its_orders_limit_and_near_the_end_one_call_at_a_time(
    money: Money,
) -> None:
    budget, run = money.budget(10), money.run()
    answer = money.ask(run, 0.5, wanted=1.0)
    assert (answer.granted, answer.bounded, answer.refused) == (1.0, True, "")
    assert money.counted(budget) == (1.0, 0.0)
    money.budget(1_000)
    assert money.ask(money.run(), 0.5, wanted=1e6).granted == 11.0
    money.budget(13.0)
    assert money.ask(money.run(), 0.5, wanted=1.0).granted == 0.5


def test_requests_that_come_again_or_late_have_no_effect_and_what_was_spent_counts_once(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    first, again = (money.ask(run, 0.5, number=number) for number in (1, 2))
    assert (first, money.counted(budget)) == (again, (0.5, 0.0))
    for number in (3, 5):
        money.ask(run, 0.9, spent=0.4, number=number)
        assert money.counted(budget) == (0.5, 0.4)
    late = money.ask(run, 0.4, spent=0.4, keep=0.4, number=4)
    assert (late.granted, money.counted(budget)) == (0.9, (0.5, 0.4))


def test_a_lost_run_counts_with_all_it_held_until_its_drone_reports_what_it_cost(money: Money) -> None:
    """Also against the limit of its order, which counts anew when a person retries or resumes it."""
    budget, run = money.budget(10), money.run()
    money.ask(run, 0.5, wanted=2.0)
    money.lose(run, heard=0.3)
    assert money.counted(budget) == (0.0, 2.0)
    assert (money.of_runs(), money.counts(run)) == (pytest.approx(2.0), pytest.approx(2.0))
    money.end(run, 0.4)
    assert money.counted(budget) == (0.0, 0.4)
    assert (money.of_runs(), money.counts(run)) == (pytest.approx(0.4), pytest.approx(0.4))
    assert money.counts(run, fresh_generation=1) == 0.0
    assert money.counts(run, fresh_generation=0) == pytest.approx(0.4)
    assert money.counts(run, renewed_generation=1) == 0.0


def test_a_lost_run_that_reports_late_without_a_known_cost_counts_with_what_it_reported_before(money: Money) -> None:
    budget, run = money.budget(10), money.run()
    money.ask(run, 0.5, wanted=2.0)
    money.ask(run, 0.5, spent=0.3)
    money.lose(run, heard=0.2)
    assert money.counted(budget) == (0.0, 2.0)
    money.end(run, None)
    assert money.counted(budget) == (0.0, 0.3)


def test_what_models_have_cost_never_falls_in_the_metrics_while_a_run_is_lost_and_reports_after_all(
    money: Money,
) -> None:
    """Prometheus would count a value that falls once more, from zero."""
    run, metered = money.run(), []
    for step in (
        lambda: money.ask(run, 1.5, wanted=2.0),
        lambda: money.ask(run, 1.5, spent=0.3),
        lambda: money.lose(run, heard=0.2),
        lambda: money.end(run, 0.4),
    ):
        step()
        metered.append(money.metered())
    assert metered == [0.0, 0.3, 0.3, 0.4]


def test_what_a_run_spent_beyond_its_blocks_is_once_in_the_metrics_when_the_next_block_pays_for_it(
    money: Money,
) -> None:
    """Without a budget, a run whose request failed makes its call, and reports it with the next request."""
    run, metered = money.run(), []
    money.ask(run, 0.1)
    for least, spent in ((0.1, 0.1), (1.4, 0.4), (1.4, 0.6), (1.4, 1.4)):
        money.ask(run, least, spent=spent)
        metered.append(money.metered())
    assert metered == [0.1, 0.4, 0.6, 1.4]


def test_prices_reach_a_run_with_the_next_answer_are_kept_as_charged_and_needed_where_a_budget_applies(
    money: Money,
) -> None:
    run = money.run()
    assert money.ask(run, 0.1).prices == ()
    assert money.ask(run, 0.1, priced=False).refused == ""
    prices.set_(money.core, money.admin, "openai/scripted", PriceRequest(input_usd=1.0, output_usd=2.0))
    (price,) = money.ask(run, 0.1).prices
    assert (price.model, price.input, price.output) == ("openai/scripted", 1e-6, 2e-6)
    charged = ModelPrice(model="openai/x", input=1e-6, output=2e-6, discount=10)
    money.ask(run, 0.1, price=charged.model_dump())
    with money.core.database.read() as db:
        kept = db.get_one(Run, run).prices
    assert kept is not None
    assert ModelPrice.model_validate(kept["openai/x"]) == charged
    money.budget(1.0)
    assert "fleet price set openai/x --input USD --output USD" in money.ask(run, 0.1, priced=False).refused


def test_a_run_waits_while_others_have_reserved_what_is_left_and_is_refused_when_it_is_spent(money: Money) -> None:
    money.budget(1.0)
    one, other = money.run(), money.run()
    money.ask(one, 0.8)
    waits = money.ask(other, 0.5)
    assert (waits.granted, waits.wait_s, waits.refused) == (0.0, 1.0, "")
    assert waits.waits_for == "other orders hold what is left of the budget of project web ($1.00 in total)"
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
    assert money.ask(other, 0.7, keep=0.0).granted == 0.0
    assert money.ask(one, 0.7, keep=0.0).granted == 0.7


def test_who_waits_longest_is_served_first_and_smaller_calls_do_not_overtake_unless_it_stops_asking(
    money: Money,
) -> None:
    money.budget(1.0)
    holds, first, second, small = (money.run() for _ in range(4))
    money.ask(holds, 0.8)
    assert money.ask(first, 0.5).wait_s is not None
    later(money.core, seconds=1)
    waits = money.ask(second, 0.3)
    assert (waits.wait_s, "have waited longer" in waits.waits_for) == (1.0, True)
    later(money.core, seconds=1)
    # There would be enough for it, and not for those that came first as well.
    assert money.ask(small, 0.2).wait_s is not None
    money.end(holds, 0.0)
    assert money.ask(small, 0.3).wait_s is not None
    assert money.ask(second, 0.3).granted == 0.3
    assert money.ask(first, 0.5).granted == 0.5
    money.end(first, 0.0)
    assert money.ask(small, 0.3).granted == 0.3


def test_a_run_that_stops_asking_holds_nobody_up_and_is_first_again_when_it_asks(money: Money) -> None:
    money.budget(1.0)
    holds, first, other, third = (money.run() for _ in range(4))
    money.ask(holds, 0.6)
    assert money.ask(first, 0.9).wait_s is not None
    later(money.core, seconds=9)
    assert money.ask(other, 0.2).wait_s is not None
    later(money.core, seconds=2)
    assert money.ask(other, 0.2).granted == 0.2
    assert money.ask(first, 0.9).wait_s is not None
    assert money.ask(third, 0.1).wait_s is not None
    money.end(holds, 0.0), money.end(other, 0.0)
    assert money.ask(third, 0.2).wait_s is not None
    assert money.ask(first, 0.9).granted == 0.9


def test_every_budget_that_applies_bounds_the_run_and_the_answer_names_the_one_that_is_used_up(money: Money) -> None:
    project, organization = money.budget(10), money.budget(0.3, kind="organization")
    run = money.run()
    assert "The budget of organization default has too little left" in money.ask(run, 0.5).refused
    assert money.ask(run, 0.2).granted == 0.2
    assert (money.counted(project), money.counted(organization)) == ((0.2, 0.0), (0.2, 0.0))


def test_the_end_of_a_run_frees_what_it_did_not_spend_and_a_new_budget_counts_what_was_before_it(money: Money) -> None:
    budget, one, other = money.budget(10), money.run(), money.run()
    money.ask(one, 0.5, wanted=2.0), money.ask(other, 0.25)
    money.end(one, 0.4)
    assert money.counted(budget) == money.counted(money.budget(1.0, kind="organization")) == (0.25, 0.4)
    with pytest.raises(Conflict):
        money.ask(one, 3.0)


def test_a_budget_lowered_below_what_is_spent_grants_nothing_more(money: Money) -> None:
    money.budget(10)
    run = money.run()
    money.ask(run, 2.0)
    money.budget(1.0)
    answer = money.ask(run, 2.5, spent=1.5)
    assert (answer.granted, answer.wait_s) == (2.0, None)
    assert "$1.00 in total, $1.50 spent, $0.50 reserved" in answer.refused


def test_money_counts_on_the_day_on_which_it_was_reserved_and_a_clock_that_is_set_back_makes_none(money: Money) -> None:
    budget, run = money.budget(1.0, per="day"), money.run()
    money.ask(run, 0.8)
    later(money.core, hours=12)
    assert money.ask(run, 1.6, spent=0.8).granted == 1.6
    assert money.counted(budget) == (0.8, 0.0)
    later(money.core, hours=-12)
    assert money.ask(money.run(), 0.3).refused != ""
    later(money.core, hours=12)
    money.end(run, 1.0)
    assert money.counted(budget) == (0.0, pytest.approx(0.2))


def test_blocks_of_a_dispatch_that_was_closed_without_a_word_about_money_are_settled(money: Money) -> None:
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


@pytest.mark.dialects
def test_absurd_amounts_are_counted_without_an_error(money: Money) -> None:
    money.budget(10)
    run = money.run()
    money.ask(run, 0.5, spent=1e9)
    money.end(run, 1e9)
    assert money.ask(money.run(), 0.1).refused != ""
    # Two such steps of a drone: the next run of the order is still told what was spent, as far as it can be.
    with money.core.database.write() as db:
        db.get_one(Run, run).cost_usd = 2e9
    assert money.counts(run) == 1e9


@pytest.mark.dialects
def test_requests_at_the_same_moment_are_never_granted_more_than_the_budget(money: Money) -> None:
    budget = money.budget(1.0)
    runs = [money.run() for _ in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda run: money.ask(run, 0.3), runs))
    assert sum(answer.granted for answer in answers) == pytest.approx(0.9)
    assert money.counted(budget) == (pytest.approx(0.9), 0.0)


# --- the drone's side of it ------------------------------------------------------------------


@dataclass
class Account:
    """What a run's purse asks."""

    money: Money
    run_id: str

    def allow(self, request: AllowanceRequest) -> Allowance:
        return allow(self.money.core, self.money.drone, self.run_id, request)


@dataclass
class Spender:
    """A run that makes calls of random sizes at random prices until there is no money for the next one."""

    money: Money
    drawn: Random
    calls: int = 0
    waits: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.run_id = self.money.run()
        self.purse = Purse(0.0, 0.0, Account(self.money, self.run_id), MoneyOfRun(bounded=True))

    def spend(self) -> None:
        price, ended = self.drawn.uniform(1e-7, 9e-5), False
        while not ended:
            most = price * self.drawn.randrange(1, 20_000)
            need = Need("openai/x", reserved(most), reserved(most * self.drawn.uniform(1, 4)), ModelPrice(model="x"))
            try:
                amount = self.purse.reserve(need)
            except MoneyAwaited as awaited:
                self.waits.append(awaited.why)
                continue
            except MoneyUsedUp:
                ended = True
            else:
                self.calls += 1
                self.purse.settle(amount, charged(dollars(amount) * self.drawn.random()))
        self.least = need.least
        self.purse.close()
        self.money.end(self.run_id, self.purse.spent)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_alone_never_waits_and_ends_only_when_too_little_is_left_for_its_call(money: Money, seed: int) -> None:
    drawn = Random(seed)
    limit = charged(drawn.uniform(0.5, 5))
    budget = money.budget(dollars(limit))
    run = Spender(money, drawn)
    run.spend()
    assert (run.waits, run.calls > 0) == ([], True)
    held, spent = money.counted(budget)
    assert (held, spent) == (0.0, run.purse.spent)
    assert limit - charged(spent) < run.least


def test_runs_that_share_a_budget_use_it_up_and_each_ends(money: Money) -> None:
    budget = money.budget(4.0)
    runs = [Spender(money, Random(seed)) for seed in range(4)]
    with ThreadPoolExecutor(len(runs)) as threads:
        for ended in [threads.submit(run.spend) for run in runs]:
            ended.result(120)
    held, spent = money.counted(budget)
    assert (held, spent <= 4.0) == (0.0, True)
    assert charged(4.0) - charged(spent) < max(run.least for run in runs)
    assert all(why for run in runs for why in run.waits)
