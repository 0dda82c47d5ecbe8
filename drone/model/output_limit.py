"""How many tokens an answer may have: `max_tokens` of a request, which also bounds what the request can cost."""

from __future__ import annotations

from drone.model.prices import listed
from drone.model.route import window_of
from drone.model.thinking import BUDGETS
from shared.work_order import OrderProvider

USUAL = 32_000
"""More than an answer with a large file has; a catalogue's maximum alone may cost two dollars."""
UNLISTED = 8_192
"""For a model that LiteLLM does not list: its endpoint may refuse more."""
LEAST = 1_024
"""Shorter answers are useless: an agent's message is cut off within its calls."""
NAMES = ("max_tokens", "max_completion_tokens")


def output_limit(provider: OrderProvider, prompt_tokens: int, *, counted: bool = False) -> int | None:
    """Tokens: the provider's own parameter, else the model's maximum up to a usual one; what the window still holds.

    None, if the model is not listed and nothing is `counted` in tokens: some endpoints refuse what exceeds a window
    that only they know.
    """
    chosen = chosen_limit(provider)
    if chosen is not None:
        return chosen
    known = listed(provider.model)
    if not known and not counted:
        return None
    most = min(known.get("max_output_tokens") or UNLISTED, USUAL) if known else UNLISTED
    return max(min(most, window_of(provider) - prompt_tokens), min(most, least_output(provider)))


def least_output(provider: OrderProvider) -> int:
    """The fewest tokens with which a call makes sense: providers refuse less than a set budget for thinking."""
    if provider.thinking is not None:
        return LEAST + BUDGETS.get(provider.thinking, 0)
    thinking = provider.params.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return LEAST + (budget if isinstance(budget, int) and budget > 0 else 0)


def chosen_limit(provider: OrderProvider) -> int | None:
    """The limit among the provider's own parameters."""
    for name in NAMES:
        value = provider.params.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
