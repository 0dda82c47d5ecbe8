"""What a model's calls cost: at the organization's own price, else at LiteLLM's; and the most that one may cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from drone.model.litellm_import import litellm
from shared.amounts import charged, dollars, reserved
from shared.budgets import ModelPrice
from shared.events import MAX_COUNT, MAX_DOLLARS, Usage
from shared.work_order import OrderProvider

_INPUT = ("input_cost_per_token", "cache_creation_input_token_cost")
_OUTPUT = ("output_cost_per_token", "output_cost_per_reasoning_token")
_LONGER = re.compile(r"(?P<rate>\w+)_above_(?P<thousands>\d+)k_tokens(?P<tier>_[a-z]+)?")
"""The name of a rate that applies to prompts of more tokens, maybe only of one service tier."""
_TIERS = {"flex": "flex", "balanced": "balanced", "priority": "priority", "fast": "priority", "ultrafast": "ultrafast"}
"""Service tiers with rates of their own, and what the names of these rates end with."""
_LISTED = ("input_cost_per_token", "output_cost_per_token", "tiered_pricing")
"""A list entry with none of these has no price by which tokens are charged; 0 is one."""


def listed(model: str) -> dict[str, Any]:
    """Return litellm's list entry for a model; empty if there is none."""
    try:
        return dict(litellm().get_model_info(_list_name(model)))
    except Exception:  # noqa: BLE001 - foreign code: it raises a bare Exception for a model that its list lacks
        return {}


@dataclass(frozen=True)
class Pricing:
    """How a model's calls are charged. `own`: the price that the organization has set."""

    model: str
    own: ModelPrice | None = None
    known: dict[str, Any] = field(default_factory=dict)
    """LiteLLM's entry."""
    tier: str | None = None
    """The service tier that is asked for. The list may have other rates for it."""

    @cached_property
    def is_known(self) -> bool:
        return self._is_set or self._listed_cost(prompt_tokens=1, completion_tokens=1) is not None

    def usage(self, reported: Any) -> Usage:
        """Read tokens and price from litellm's usage; thinking tokens are part of the output tokens."""
        if reported is None:
            return Usage()
        thought = getattr(reported.completion_tokens_details, "reasoning_tokens", None)
        cached = getattr(reported.prompt_tokens_details, "cached_tokens", None)
        return Usage(
            input_tokens=_tokens(reported.prompt_tokens),
            output_tokens=_tokens(reported.completion_tokens),
            thinking_tokens=_tokens(thought),
            cached_tokens=_tokens(cached),
            cost_usd=self._cost(reported),
        )

    def most(self, input_tokens: int, output_tokens: int) -> int:
        """The most that a call of this size costs: nothing cached, at the highest of the model's rates.

        The endpoint may answer at its standard tier if another one was asked for. Nanodollars; 0 for an unknown price.
        """
        if self.own is not None and self._is_set:
            asked = max(self.own.input or 0.0, self.own.cache_write or 0.0) * input_tokens
            return reserved(self._discounted(asked + (self.own.output or 0.0) * output_tokens))
        rates = self._rate(_INPUT, input_tokens) * input_tokens + self._rate(_OUTPUT, input_tokens) * output_tokens
        if not self.known.get("input_cost_per_token") and self.is_known:
            # Some models are charged by other units, which litellm's own computation knows; it takes longer.
            cost = self._listed_cost(prompt_tokens=input_tokens, completion_tokens=output_tokens) or 0.0
            rates = max(rates, cost)
        return reserved(self._discounted(rates))

    @property
    def price(self) -> ModelPrice:
        """The rates that apply now, to keep with the run."""
        if self.own is not None and self._is_set:
            return self.own
        return ModelPrice(
            model=self.model,
            input=self._listed_rate("input_cost_per_token"),
            output=self._listed_rate("output_cost_per_token"),
            cache_read=self._listed_rate("cache_read_input_token_cost"),
            cache_write=self._listed_rate("cache_creation_input_token_cost"),
            discount=self.own.discount if self.own is not None else 0.0,
        )

    @property
    def _is_set(self) -> bool:
        return self.own is not None and self.own.input is not None and self.own.output is not None

    def _cost(self, reported: Any) -> float | None:
        """USD, to the nanodollar; None if the price is unknown, which is not the same as 0."""
        cost = self._own_cost(self.own, reported) if self.own and self._is_set else None
        if cost is None:
            cost = self._listed_cost(usage_object=reported)
        return None if cost is None else dollars(charged(min(max(self._discounted(cost), 0.0), MAX_DOLLARS)))

    def _own_cost(self, own: ModelPrice, reported: Any) -> float:
        details = reported.prompt_tokens_details
        read = _tokens(getattr(details, "cached_tokens", None))
        written = _tokens(getattr(details, "cache_creation_tokens", None))
        asked, answered = _tokens(reported.prompt_tokens), _tokens(reported.completion_tokens)
        plain = max(0, asked - read - written)
        normal = own.input or 0.0
        return (
            plain * normal
            + read * (normal if own.cache_read is None else own.cache_read)
            + written * (normal if own.cache_write is None else own.cache_write)
            + answered * (own.output or 0.0)
        )

    def _listed_cost(self, **used: Any) -> float | None:
        """USD according to litellm's price list; None if the list has no price for the model."""
        module = litellm()
        # litellm computes 0 for a name if it knows only its pattern. What Ollama runs costs nothing.
        entry = module.model_cost.get(self.known.get("key"), {})
        if self.known.get("litellm_provider") != "ollama" and all(entry.get(name) is None for name in _LISTED):
            return None
        try:
            asked, answered = module.cost_per_token(model=_list_name(self.model), service_tier=self.tier, **used)
        except (module.ModelNotMappedError, module.BadRequestError, module.NotFoundError):
            return None
        return float(asked + answered)

    def _discounted(self, usd: float) -> float:
        return usd * (1 - self.own.discount / 100) if self.own else usd

    def _listed_rate(self, name: str) -> float | None:
        """The rate of the tier, else the standard one; None for a model without a known price."""
        rate = self.known.get(name + self._suffix)
        if rate is None:
            rate = self.known.get(name)
        return rate if self.is_known else None

    def _rate(self, names: tuple[str, ...], input_tokens: int) -> float:
        """The highest of these rates, and of those that apply only to longer prompts if this is one."""
        rates = [self.known.get(name + suffix) for name in names for suffix in {"", self._suffix}]
        rates += [rate for name, tokens, rate in self._longer if name in names and input_tokens > tokens]
        return max((rate for rate in rates if isinstance(rate, int | float)), default=0.0)

    @cached_property
    def _longer(self) -> list[tuple[str, int, Any]]:
        """The rates that apply to longer prompts: the name of the usual one, tokens, and the rate."""
        found = ((_LONGER.fullmatch(name), rate) for name, rate in self.known.items())
        return [
            (each["rate"], 1000 * int(each["thousands"]), rate)
            for each, rate in found
            if each and (each["tier"] or "") in {"", self._suffix}
        ]

    @property
    def _suffix(self) -> str:
        """What the names of the tier's rates end with; empty for the standard ones."""
        return f"_{_TIERS[self.tier]}" if self.tier in _TIERS else ""


def pricing_of(model: str, own: Iterable[ModelPrice] = (), tier: str | None = None) -> Pricing:
    """How the model is charged; `own` are prices that the organization has set, of any models."""
    return Pricing(model, next((each for each in own if each.model == model), None), listed(model), tier)


def tier_of(provider: OrderProvider) -> str | None:
    """The service tier that the provider's parameters ask for."""
    body = provider.params.get("extra_body")
    for params in (body if isinstance(body, dict) else {}, provider.params):
        if isinstance(tier := params.get("service_tier"), str):
            return tier.lower()
    return None


def is_priced(model: str) -> bool:
    """Whether litellm knows what the model costs."""
    return pricing_of(model).is_known


def _list_name(model: str) -> str:
    """The model's name in the list, which is the same for both of OpenAI's protocols."""
    return model.replace("openai/responses/", "openai/", 1)


def _tokens(number: int | None) -> int:
    """What the endpoint counted. One that answers with nonsense must not end the run."""
    return min(max(number or 0, 0), MAX_COUNT)
