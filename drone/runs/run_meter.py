"""Bounds what the model calls of a run may cost: sizes each call, reserves its worst case, and counts what it cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drone.agent.budget import BudgetedControls
from drone.agent.protocols import Controls, Recorder
from drone.agent.values import ToolSpec
from drone.model.metering import MeteredCall, PutOff
from drone.model.output_limit import least_output, output_limit
from drone.model.prices import Pricing, pricing_of, tier_of
from drone.model.prompt_bound import PromptBound
from drone.runs.limit_question import LimitQuestion
from drone.runs.purse import MoneyAwaited, MoneyUsedUp, Need, Purse
from shared.amounts import charged, dollars
from shared.budgets import ModelPrice
from shared.clock import Clock
from shared.events import ChargeStep, CommentStep, Usage
from shared.messages import Message
from shared.work_order import OrderProvider

LONGEST_WAIT = 900.0
"""Seconds for which a call waits for money that other runs hold; then it counts as used up."""
_WAITED = f"The order waited for money for {LONGEST_WAIT / 60:.0f} minutes"
_LOOK_UP_EVERY = 0.2
"""Seconds between two checks of the controls while waiting."""


class RunMeter:
    """Implements `drone.model.metering.Meter` for one run. Threads may share it."""

    def __init__(
        self, purse: Purse, recorder: Recorder, controls: Controls, clock: Clock, person: LimitQuestion | None = None
    ) -> None:
        """`person` is asked when the money is used up; None: the run ends."""
        self._purse = purse
        self._person = person
        self._recorder = recorder
        self._controls = controls
        self._clock = clock
        self._bounds: defaultdict[str, PromptBound] = defaultdict(PromptBound)
        """By model: another one, such as a fallback, may count more tokens in the same text."""
        self._pricings: dict[tuple[str, tuple[ModelPrice, ...], str | None], Pricing] = {}
        self._said: set[str] = set()

    def reserve(
        self, provider: OrderProvider, messages: Sequence[Message], tools: Sequence[ToolSpec], put_off: PutOff
    ) -> MeteredCall:
        until: float | None = None
        waited = False
        if self._person is not None:
            self._person.check_calls()
        while True:
            try:
                call = self._reserved(provider, messages, tools)
            except (MoneyAwaited, MoneyUsedUp) as reason:
                waited = True
                with put_off():
                    until = self._without_money(reason, until)
            else:
                if self._person is not None:
                    call.is_last = self._person.count_call()
                if waited:
                    self._recorder.doing("waiting for the model")
                return call

    def _without_money(self, reason: MoneyAwaited | MoneyUsedUp, until: float | None) -> float | None:
        """Return when the call may be tried again: after a while, or when a person says so; else, the run ends.

        `until`, and what is returned: when a wait for other runs has lasted too long.
        """
        if isinstance(reason, MoneyAwaited) and reason.by_others:
            until = until or self._clock.monotonic() + LONGEST_WAIT
            if self._clock.monotonic() >= until:
                reason = MoneyUsedUp("budget", f"{_WAITED}: {reason.why}.")
        if isinstance(reason, MoneyAwaited):
            self._pause(reason.seconds, reason.why)
            return until
        if self._person is None:
            raise reason
        self._person.ask(reason, self._purse, self._controls.ruling, self._controls.check)
        return None

    def _reserved(self, provider: OrderProvider, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> _Call:
        pricing = self._pricing(provider)
        size = self._bounds[provider.model].size(messages, tools)
        call = _Call(self, provider, messages, pricing)
        call.most_input = size.bound
        if not pricing.is_known:
            self._purse.check_unpriced(provider.model)
            call.max_tokens = output_limit(provider, size.estimate)
            return call
        longest = output_limit(provider, size.estimate, counted=True) or 0
        least = pricing.most(size.bound, min(longest, least_output(provider)))
        need = Need(provider.model, least, pricing.most(size.bound, longest), pricing.price)
        call.reserved = self._purse.reserve(need)
        call.max_tokens = longest if call.reserved >= need.wanted else _affordable(pricing, size.bound, call.reserved)
        return call

    def learned(self, model: str, messages: Sequence[Message], usage: Usage) -> None:
        """The provider of this model counted the tokens of a question."""
        self._bounds[model].learned(messages, usage.input_tokens)

    def settled(self, amount: int, cost: int) -> None:
        self._purse.settle(amount, cost)

    def unanswered(self, call: _Call) -> None:
        """The call has no answer: it may be made again, also the last one of a run."""
        if call.is_last and self._person is not None:
            self._person.give_back_call()

    def charge(self, model: str, usage: Usage) -> None:
        """Count and record spending on an answer that the caller of the model does not get."""
        if isinstance(self._controls, BudgetedControls):
            self._controls.budget.charge_recorded(usage)
        self._recorder.record(ChargeStep(about="broken_off", usage=usage, model=model))

    def remark(self, text: str) -> None:
        """Record a sentence once."""
        if text not in self._said:
            self._said.add(text)
            self._recorder.record(CommentStep(text=text))

    def _pricing(self, provider: OrderProvider) -> Pricing:
        key = (provider.model, self._purse.prices, tier_of(provider))
        if key not in self._pricings:
            self._pricings[key] = pricing_of(*key)
        return self._pricings[key]

    def _pause(self, seconds: float, why: str) -> None:
        """Wait for money, as for a provider: the wait is no lack of progress. Raises what the controls raise."""
        self._recorder.doing(f"waiting for money: {why}", "provider")
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0:
            self._controls.check()
            self._clock.sleep(min(left, _LOOK_UP_EVERY))


class _Call:
    """A call and what was reserved for it."""

    def __init__(self, meter: RunMeter, provider: OrderProvider, messages: Sequence[Message], pricing: Pricing) -> None:
        self._meter = meter
        self._provider = provider
        self._messages = messages
        self._pricing = pricing
        self.reserved = 0
        """Nanodollars."""
        self.max_tokens: int | None = None
        self.listed_usd: float | None = None
        self.most_input = 0
        self.is_last = False
        """The one call that is left at the limit, for the summary."""

    def answered(self, reported: Any) -> Usage:
        usage = self._pricing.usage(reported)
        if self._pricing.is_known:
            usage = self._bounded(usage, missing=reported is None)
        self.listed_usd = usage.cost_usd if self._pricing.own is None else self._listed(reported)
        if usage.input_tokens <= self.most_input:
            self._meter.learned(self._provider.model, self._messages, usage)
        self._meter.settled(self.reserved, charged(usage.cost_usd or 0.0))
        return usage

    def discarded(self, reported: Any) -> None:
        self._meter.unanswered(self)
        self._meter.charge(self._provider.model, self.answered(reported))

    def broke_off(self) -> None:
        self._meter.unanswered(self)
        self._meter.settled(self.reserved, self.reserved)
        if self.reserved:
            self._meter.charge(self._provider.model, Usage(cost_usd=dollars(self.reserved)))

    def refused(self) -> None:
        self._meter.unanswered(self)
        self._meter.settled(self.reserved, 0)

    def _listed(self, reported: Any) -> float | None:
        """USD at the list's prices, at most what such a call can cost; None if the list lacks the model."""
        pricing = replace(self._pricing, own=None)
        if not pricing.is_known:
            return None
        most = dollars(pricing.most(self.most_input, self.max_tokens or 0))
        return most if reported is None else min(pricing.usage(reported).cost_usd or 0.0, most)

    def _bounded(self, usage: Usage, *, missing: bool) -> Usage:
        """The usage, at most with the cost that such a call can have."""
        model = self._provider.model
        if missing:
            self._meter.remark(
                f"The endpoint of {model} reports no usage: each answer counts with the most that it may have cost."
            )
        elif charged(usage.cost_usd or 0.0) > self.reserved:
            self._meter.remark(
                f"The endpoint of {model} reported more tokens than the request allowed "
                f"({usage.input_tokens} in, {usage.output_tokens} out); "
                "the answer counts with the most that it may have cost."
            )
        else:
            return usage
        return usage.model_copy(update={"cost_usd": dollars(self.reserved)})


def _affordable(pricing: Pricing, input_tokens: int, nusd: int) -> int:
    """The longest answer that costs no more than so many nanodollars together with its question."""
    asked = pricing.most(input_tokens, 0)
    each = (pricing.most(input_tokens, 1000) - asked) / 1000
    tokens = int((nusd - asked) / each) if each > 0 else 1
    while tokens > 1 and pricing.most(input_tokens, tokens) > nusd:
        tokens -= 1
    return max(1, tokens)
