"""What model calls cost: as reported, at most their reservation, and all of it where nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import Any

import pytest

from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.in_memory import KeptEvents, QuietControls
from drone.agent.values import ModelCallFailed, ModelResponse, Ruling
from drone.model.litellm_import import litellm
from drone.model.litellm_model import LiteLLMModel
from drone.model.metering import MeteredCall
from drone.model.output_limit import output_limit
from drone.model.prices import pricing_of
from drone.model.prompt_bound import PromptBound
from drone.model.scripted.server import ScriptedServer
from drone.runs.limit_question import LimitQuestion
from drone.runs.purse import MoneyUsedUp, Purse
from drone.runs.run_meter import LONGEST_WAIT, RunMeter
from shared.amounts import charged, reserved
from shared.budgets import Allowance, AllowanceRequest, ModelPrice, Money
from shared.clock import SystemClock
from shared.errors import Interrupted
from shared.events import ChargeStep, CommentStep, Usage
from shared.messages import Message
from shared.rates import Tokens
from shared.work_order import Limits, OrderProvider
from tests.support.clocks import HandClock

LISTED = "openai/gpt-4o-mini"
INPUT, OUTPUT = 0.15e-6, 0.60e-6
QUESTION = (Message(role="system", content="Rules."), Message(role="user", content="Do it."))


class Metered:
    """A model at a scripted endpoint, with the purse that pays for it."""

    def __init__(self, server: ScriptedServer, limit: float, prices: tuple[ModelPrice, ...], **provider: Any) -> None:
        self.server, self.recorder = server, KeptEvents()
        self.purse = Purse(limit, 0.0, None, Money(prices=prices))
        clock, limits = SystemClock(), Limits(base_delay=0, max_retries=1)
        self.budget = RunBudget(limits, clock)
        controls = BudgetedControls(QuietControls(), self.budget)
        meter = RunMeter(self.purse, self.recorder, controls, clock)
        given = OrderProvider.model_validate({"name": "scripted", "model": LISTED, "api_base": server.url, **provider})
        self.model = LiteLLMModel(given, None, limits, self.recorder, clock, controls, meter=meter)

    def ask(self, *messages: Message, on_delta: Any = lambda *_: None) -> Usage:
        return self.answer(*messages, on_delta=on_delta).usage

    def answer(self, *messages: Message, on_delta: Any = lambda *_: None) -> ModelResponse:
        return self.model.answer(messages or QUESTION, (), on_delta)

    def recorded(self, kind: type[Any]) -> list[Any]:
        return [body for body in self.recorder.bodies if isinstance(body, kind)]


@contextmanager
def metered(
    *replies: dict[str, Any],
    limit: float = 0.0,
    prices: tuple[ModelPrice, ...] = (),
    count: Any = None,
    **provider: Any,
) -> Iterator[Metered]:
    with ScriptedServer(list(replies), **({"count": count} if count else {})) as server:
        asking = Metered(server, limit, tuple(prices), **provider)
        try:
            yield asking
        finally:
            asking.model.close()


def cost(usage: Usage, asked: float = INPUT, answered: float = OUTPUT) -> Any:
    """To the nanodollar."""
    return pytest.approx(usage.input_tokens * asked + usage.output_tokens * answered, abs=1e-9)


def test_an_answer_costs_what_the_endpoint_reports_or_litellm_counts() -> None:
    for more in ({}, {"usage": None}):
        with metered({"text": "Done. " * 100, **more}) as asking:
            usage = asking.ask()
        assert usage.output_tokens >= 100
        assert (usage.cost_usd, asking.purse.spent) == (cost(usage), pytest.approx(usage.cost_usd))


def test_absurd_usage_counts_at_most_with_what_was_reserved() -> None:
    with metered({"text": "Done.", "repeat": True}, count=lambda _: 2**31) as asking:
        costs = [asking.ask().cost_usd for _ in range(2)]
    assert all(cost is not None and cost < 0.02 for cost in costs)
    assert len(asking.recorded(CommentStep)) == 1
    assert "more tokens than the request allowed" in asking.recorded(CommentStep)[0].text


def test_a_refused_call_costs_nothing() -> None:
    for status in (400, 500):
        refused = {"text": "", "status": status, "error": "no", "repeat": True}
        with metered(refused) as asking, pytest.raises(ModelCallFailed):
            asking.ask()
        assert (asking.purse.spent, asking.recorded(ChargeStep)) == (0, []), status


def test_a_call_that_waits_for_money_has_no_permit_and_ends_after_a_while_with_the_budget_that_others_hold() -> None:
    with sharing(3) as (model, others):
        model.answer(QUESTION, (), lambda *_: None)
    assert (others.taken, others.held, others.held_when_asked[:4]) == (4, 0, [1, 1, 1, 1])
    with sharing(1000) as (model, others), pytest.raises(MoneyUsedUp) as ended:
        model.answer(QUESTION, (), lambda *_: None)
    assert (ended.value.about, "the budget of project web" in ended.value.reason) == ("budget", True)
    assert (others.passed, others.held) == (pytest.approx(LONGEST_WAIT), 0)


def test_the_call_for_a_summary_may_be_made_again_until_it_is_answered() -> None:
    controls = QuietControls()
    controls.rulings["money-1"] = Ruling(approved=False, finish=True)
    person = LimitQuestion(KeptEvents(), HandClock(), 60, None)
    meter = RunMeter(Purse(0.01, 0.01, None, Money()), KeptEvents(), controls, HandClock(), person)
    provider = OrderProvider(name="scripted", model=LISTED, params={"max_tokens": 100})

    def reserve() -> MeteredCall:
        return meter.reserve(provider, QUESTION, (), nullcontext)

    with pytest.raises(Interrupted):
        reserve()
    reserve().refused()
    reserve().answered(None)
    with pytest.raises(MoneyUsedUp):
        reserve()


def test_near_the_limit_answers_get_shorter_and_then_no_call_is_made() -> None:
    with metered({"text": "Done.", "repeat": True}, limit=0.004) as asking:
        asking.ask()
        (short,) = (body["max_tokens"] for body in asking.server.requests)
        assert 1_024 <= short < 0.004 / OUTPUT
        asking.purse.settle(0, reserved(0.0035))
        with pytest.raises(MoneyUsedUp):
            asking.ask()
        assert len(asking.server.requests) == 1


def test_a_price_that_is_set_replaces_the_list_with_cache_prices_and_discount() -> None:
    own = ModelPrice(model=LISTED, input=1e-6, output=2e-6, cache_read=1e-7, discount=50)
    with metered({"text": "Done."}, prices=(own,)) as asking:
        usage = asking.ask()
    assert usage.cost_usd == cost(usage, 1e-6 / 2, 2e-6 / 2)
    with metered({"text": "Done."}, prices=(ModelPrice(model=LISTED, discount=10),)) as asking:
        usage = asking.ask()
    assert usage.cost_usd == cost(usage, 0.9 * INPUT, 0.9 * OUTPUT)


def test_an_answer_also_has_its_cost_at_the_list_s_prices_at_most_that_of_the_longest_answer() -> None:
    free, own = ModelPrice(model=LISTED, discount=100), ModelPrice(model="openai/own-model", input=1e-6, output=2e-6)
    with metered({"text": "Done."}, prices=(free,)) as asking:
        answer = asking.answer()
    assert (answer.usage.cost_usd, answer.listed_usd) == (0.0, cost(answer.usage))
    for reply, count in (({"text": "Done."}, lambda _: 2**31), ({"text": "Done.", "usage": None}, None)):
        with metered(reply, prices=(free,), count=count) as asking:
            listed = asking.answer().listed_usd
        assert listed is not None
        assert 0 < listed < 0.02
    with metered({"text": "Done."}, prices=(own,), model="openai/own-model") as asking:
        answer = asking.answer()
    assert (answer.usage.cost_usd, answer.listed_usd) == (cost(answer.usage, 1e-6, 2e-6), None)


def test_a_model_without_a_price_is_called_without_max_tokens_and_its_cost_is_unknown() -> None:
    with metered({"text": "Done."}, model="openai/own-model") as asking:
        assert asking.ask().cost_usd is None
        assert "max_tokens" not in asking.server.requests[0]


def test_models_that_take_turns_are_each_charged_at_their_own_price() -> None:
    """And so is a fallback."""
    with ScriptedServer([{"text": "Done."}] * 2) as second:
        other = OrderProvider(name="second", model="openai/gpt-4o", api_base=second.url)
        with metered({"text": "Done."}, fallbacks=(other,), rotation="alternate") as asking:
            first = asking.ask()
            next_one = asking.ask(*QUESTION, Message(role="assistant", content="Done."), QUESTION[1])
        with metered({"text": "", "status": 401, "error": "no"}, fallbacks=(other,)) as asking:
            fallback = asking.ask()
    assert first.cost_usd == cost(first)
    for usage in (next_one, fallback):
        assert usage.cost_usd == cost(usage, 2.5e-6, 10e-6)


def test_what_one_model_counted_bounds_no_question_to_another_which_may_count_more() -> None:
    question = [Message(role="user", content="x" * 90_000)]
    purse = Purse(0.0, 0.0, None, Money())
    meter = RunMeter(purse, KeptEvents(), QuietControls(), SystemClock())
    second = OrderProvider(name="second", model="openai/gpt-4o", params={"max_tokens": 1})
    meter.learned(LISTED, question, Usage(input_tokens=10))
    meter.reserve(second, question, (), nullcontext).broke_off()
    assert purse.spent >= 90_000 * 2.5e-6


class Others(HandClock):
    """An account of which other runs hold all, until so many requests were made; with a run's permits and clock."""

    def __init__(self, requests: float) -> None:
        super().__init__()
        self.left = requests
        self.held = self.taken = 0
        self.held_when_asked: list[int] = []

    def sleep(self, seconds: float) -> None:
        assert self.held == 0
        super().sleep(seconds)

    def allow(self, request: AllowanceRequest) -> Allowance:
        self.held_when_asked.append(self.held)
        self.left -= 1
        if self.left < 0:
            return Allowance(granted=request.wanted, bounded=True)
        return Allowance(bounded=True, wait_s=10.0, waits_for="the budget of project web")

    def take(self, provider: str, expected: Tokens) -> Others:
        self.held += 1
        self.taken += 1
        return self

    def ended(self, *_: object) -> bool:
        self.held -= 1
        return False

    unused = failed = answered = refused = ended


@contextmanager
def sharing(requests: float) -> Iterator[tuple[LiteLLMModel, Others]]:
    others, recorder, controls = Others(requests), KeptEvents(), QuietControls()
    purse = Purse(0.0, 0.0, others, Money(bounded=True))
    with ScriptedServer([{"text": "Done."}]) as server:
        given = OrderProvider(name="scripted", model=LISTED, api_base=server.url)
        meter = RunMeter(purse, recorder, controls, others)
        model = LiteLLMModel(given, None, Limits(), recorder, others, controls, meter=meter, permits=others)
        try:
            yield model, others
        finally:
            model.close()
            purse.close()


def test_a_longer_question_is_bounded_by_what_was_counted_and_the_bytes_since() -> None:
    bound = PromptBound()
    first = [Message(role="user", content="x" * 9_000)]
    assert bound.size(first, ()).bound >= 9_000
    bound.learned(first, 2_000)
    longer = [*first, Message(role="user", content="ü" * 50)]
    assert 2_000 + 100 <= bound.size(longer, ()).bound < 2_300
    # Another conversation, and one that was cut after its beginning.
    assert bound.size([Message(role="user", content="y" * 9_000)], ()).bound >= 9_000
    system, one = Message(role="system", content="r" * 900), Message(role="user", content="x" * 900)
    bound.learned([system, one, Message(role="user", content="reminder")], 700)
    assert 700 <= bound.size([system, one], ()).bound < 1_000
    # One that was compacted: only its system prompt was counted, as a part of all that was there before.
    bound.learned([system, *(Message(role="user", content="x") for _ in range(3))], 100_000)
    compacted = bound.size([system, Message(role="user", content="summary")], ())
    assert compacted == PromptBound().size([system, Message(role="user", content="summary")], ())


def test_an_answer_may_be_as_long_as_the_model_the_window_and_the_usual_allow() -> None:
    cases: list[tuple[dict[str, Any], int, int]] = [
        ({"model": "anthropic/claude-sonnet-4-5"}, 1_000, 32_000),
        ({"model": LISTED}, 1_000, 16_384),
        ({"model": LISTED}, 127_500, 1_024),
        ({"model": "openai/own-model", "context_window": 8_000}, 6_000, 2_000),
        ({"model": LISTED, "params": {"max_tokens": 64_000}}, 1_000, 64_000),
    ]
    for fields, prompt, most in cases:
        assert output_limit(OrderProvider(name="x", **fields), prompt, counted=True) == most, (fields, prompt)


def test_the_worst_case_is_never_less_than_what_litellm_computes_and_uses_rates_of_long_prompts_only_for_them() -> None:
    pricing = pricing_of("gemini/gemini-2.5-pro")
    assert pricing.most(100_000, 0) == reserved(100_000 * 1.25e-6)
    assert pricing.most(300_000, 1_000) == reserved(300_000 * 2.5e-6 + 1_000 * 15e-6)
    for model in (LISTED, "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"):
        for asked, answered in product((0, 1, 199_999, 200_001, 900_000), (0, 1, 32_000)):
            costs = litellm().cost_per_token(model=model, prompt_tokens=asked, completion_tokens=answered)
            assert pricing_of(model).most(asked, answered) >= charged(float(sum(costs))), (model, asked, answered)


def test_an_answer_that_the_endpoint_filtered_is_charged_with_what_it_reports() -> None:
    with metered({"text": "I", "finish_reason": "content_filter"}) as asking, pytest.raises(ModelCallFailed):
        asking.ask()
    (charge,) = asking.recorded(ChargeStep)
    assert charge.usage.output_tokens > 0
    assert (charge.usage.cost_usd, asking.purse.spent) == (cost(charge.usage), charge.usage.cost_usd)
    assert asking.budget.stats().cost_usd == charge.usage.cost_usd


def test_a_service_tier_is_charged_at_its_rates_and_bounded_by_the_standard_ones_too() -> None:
    cases: list[tuple[dict[str, Any], float]] = [
        ({"service_tier": "flex"}, 0.5),
        ({"extra_body": {"service_tier": "priority"}}, 2),
    ]
    for params, factor in cases:
        with metered({"text": "Done."}, model="openai/gpt-5", params=params) as asking:
            usage = asking.ask()
        assert usage.cost_usd == cost(usage, factor * 1.25e-6, factor * 10e-6), params
    for model, tier in product(
        ("openai/gpt-5", "azure/gpt-5.4", "gemini/gemini-2.5-pro"), ("flex", "priority", "auto")
    ):
        pricing = pricing_of(model, tier=tier)
        for asked, used in product((1, 199_999, 200_001, 900_000), (tier, None)):
            sizes = {"prompt_tokens": asked, "completion_tokens": 1_000}
            costs = litellm().cost_per_token(model=model, service_tier=used, **sizes)
            assert pricing.most(asked, 1_000) >= charged(float(sum(costs))), (model, tier, asked, used)


def test_an_answer_that_breaks_off_or_is_interrupted_is_charged_in_full_and_its_retry_again() -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    with metered({"text": "Done and done.", "fail": [{"text": "Hal", "cut_after": 2}]}) as asking:
        usage = asking.ask()
        (broken,) = asking.recorded(ChargeStep)
        assert broken.about == "broken_off"
        assert broken.usage.cost_usd >= 16_384 * OUTPUT
        assert asking.purse.spent == pytest.approx(broken.usage.cost_usd + (usage.cost_usd or 0))
        # The loop charges the answer itself.
        assert asking.budget.stats().cost_usd == broken.usage.cost_usd
        with pytest.raises(Interrupted):
            asking.ask(*QUESTION, on_delta=interrupt)
        assert len(asking.recorded(ChargeStep)) == 2
        assert asking.purse.spent >= broken.usage.cost_usd + 16_384 * OUTPUT
