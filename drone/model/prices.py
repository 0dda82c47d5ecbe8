"""What litellm knows about a model by its name, and the cost of an answer."""

from __future__ import annotations

from typing import Any

from drone.model.litellm_import import litellm
from shared.events import MAX_COUNT, MAX_DOLLARS, Usage


def listed(model: str) -> dict[str, Any]:
    """Return litellm's list entry for a model; empty if there is none."""
    try:
        return dict(litellm().get_model_info(model))
    except Exception:  # noqa: BLE001 - foreign code: it raises a bare Exception for a model that its list lacks
        return {}


def is_priced(model: str) -> bool:
    """Whether litellm knows what the model costs."""
    return _cost(model, prompt_tokens=1, completion_tokens=1) is not None


def usage_of(usage: Any, model: str) -> Usage:
    """Read tokens and price from litellm's usage; thinking tokens are part of the output tokens."""
    if usage is None:
        return Usage()
    answered = getattr(usage.completion_tokens_details, "reasoning_tokens", None)
    asked = getattr(usage.prompt_tokens_details, "cached_tokens", None)
    return Usage(
        input_tokens=_tokens(usage.prompt_tokens),
        output_tokens=_tokens(usage.completion_tokens),
        thinking_tokens=_tokens(answered),
        cached_tokens=_tokens(asked),
        cost_usd=_price(usage, model),
    )


def _tokens(number: int | None) -> int:
    """What the endpoint counted. One that answers with nonsense must not end the run."""
    return min(max(number or 0, 0), MAX_COUNT)


def _price(usage: Any, model: str) -> float | None:
    """USD according to litellm's price list; None if the model is not in the list, which is not the same as 0."""
    cost = _cost(model, usage_object=usage)
    return None if cost is None else min(max(cost, 0.0), MAX_DOLLARS)


def _cost(model: str, **used: Any) -> float | None:
    module = litellm()
    try:
        asked, answered = module.cost_per_token(model=model, **used)
    except (module.ModelNotMappedError, module.BadRequestError, module.NotFoundError):
        return None
    return float(asked + answered)
