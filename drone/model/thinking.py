"""How a thinking level is asked of a model: as `reasoning_effort`, in a level that the model knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drone.model.litellm_import import litellm
from drone.model.prices import listed
from shared.work_order import OrderProvider, ThinkingLevel

PARAMS = frozenset({"thinking", "reasoning_effort"})
"""Parameters with which a provider may set the same."""
BUDGETS: Mapping[ThinkingLevel, int] = {"minimal": 1024, "low": 1024, "medium": 2048, "high": 4096, "xhigh": 8192}
"""Tokens that litellm gives to thinking where a model takes a number instead of a level."""
_LADDER: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh")
_ALWAYS: frozenset[ThinkingLevel] = frozenset({"low", "medium", "high"})
_WORDS: Mapping[ThinkingLevel, str] = {"off": "none"}
"""OpenAI's words, where they are not ours."""
_COUNTED = ("anthropic", "bedrock", "gemini", "vertex_ai", "deepseek")
"""Beginnings of providers whose models take a number of tokens, or only on and off: litellm translates each level."""
_FLAGS = ("none", "minimal", "low", "xhigh", "max")
_ANY_MODEL = ("hosted_vllm/", "openrouter/")
"""Beginnings of names behind which any model may be, so that litellm's list says nothing about it; OpenRouter itself
takes every level for every model.
"""


@dataclass(frozen=True)
class Effort:
    """What is sent for a level."""

    value: str | None = None
    """None: nothing."""
    note: str = ""
    """What the model gets instead of the level, for people."""


def effort_of(provider: OrderProvider, model: str) -> Effort:
    """The effort for the provider's level. `model`: its name for litellm."""
    level = provider.thinking
    if level is None:
        return Effort()
    known = {} if model.startswith(_ANY_MODEL) else listed(provider.model)
    takes = "reasoning_effort" in (litellm().get_supported_openai_params(model) or ())
    if not takes or (known and not known.get("supports_reasoning")):
        said = f"{provider.model} has no thinking levels: `{level}` is not sent."
        return Effort(note="" if level == "off" else said)
    nearest = _nearest(level, _offered(known)) if known else level
    if nearest == level:
        return Effort(_WORDS.get(level, level))
    said = "cannot stop thinking" if level == "off" else f"has no thinking level `{level}`"
    return Effort(_WORDS.get(nearest, nearest), f"{provider.model} {said}: it is asked for `{nearest}`.")


def _offered(known: Mapping[str, Any]) -> frozenset[ThinkingLevel]:
    """The levels of a listed model. What the list does not say is not assumed: providers refuse unknown levels."""
    flags = {word for word in _FLAGS if known.get(f"supports_{word}_reasoning_effort")}
    offered = {*_ALWAYS, *(level for level in _LADDER if _WORDS.get(level, level) in flags)}
    if str(known.get("litellm_provider")).startswith(_COUNTED):
        offered |= {"off", "minimal"}
    # Claude up to 4.5 takes a number of tokens, and litellm has one for each level.
    if "claude" in str(known.get("key")) and not flags:
        offered.add("xhigh")
    return frozenset(offered)


def _nearest(level: ThinkingLevel, offered: frozenset[ThinkingLevel]) -> ThinkingLevel:
    """The level itself, else the next lower one but `off`, else the next higher one."""
    place = _LADDER.index(level)
    lower = [each for each in _LADDER[1:place] if each in offered]
    higher = [each for each in _LADDER[place + 1 :] if each in offered]
    return level if level in offered else (*reversed(lower), *higher)[0]
