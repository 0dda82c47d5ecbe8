"""What a model call asks before it is sent, and reports after it: may it cost this much, and what did it cost?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from drone.agent.values import ToolSpec
from drone.model.output_limit import output_limit
from drone.model.prices import pricing_of, tier_of
from drone.model.prompt_bound import PromptBound
from shared.events import Usage
from shared.messages import Message
from shared.work_order import OrderProvider


class MeteredCall(Protocol):
    """One call whose worst case is reserved. Exactly one of its methods is called, once."""

    @property
    def max_tokens(self) -> int | None:
        """The most tokens that it may answer with; None: as many as the endpoint gives."""
        ...

    @property
    def listed_usd(self) -> float | None:
        """USD that the answer cost at the prices of LiteLLM's list, which no organization sets; None if unknown."""
        ...

    def answered(self, reported: Any) -> Usage:
        """It was answered; returns litellm's usage with what counts as its cost."""
        ...

    def discarded(self, reported: Any) -> None:
        """It was answered with what is no answer, such as a refusal: it is charged by litellm's usage."""
        ...

    def broke_off(self) -> None:
        """It began, and did not end: the provider may charge all of it."""
        ...

    def refused(self) -> None:
        """It was not accepted, so it costs nothing."""
        ...


PutOff = Callable[[], AbstractContextManager[object]]
"""Gives back, for as long as its block lasts, what the call holds beside money: its permit."""


class Meter(Protocol):
    """Bounds what the calls of a run may cost."""

    def reserve(
        self, provider: OrderProvider, messages: Sequence[Message], tools: Sequence[ToolSpec], put_off: PutOff
    ) -> MeteredCall:
        """Reserve the most that the call may cost; waits, in a `put_off`, if other runs have reserved what is left.

        Raises LimitsExceeded if there is no money for it.
        """
        ...


class Unmetered:
    """Bounds nothing, and reads prices from LiteLLM's list; implements Meter."""

    def __init__(self) -> None:
        self._bound = PromptBound()

    def reserve(
        self,
        provider: OrderProvider,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        put_off: PutOff,  # noqa: ARG002 - it waits for nothing
    ) -> MeteredCall:
        size = self._bound.size(messages, tools)
        return _Free(self._bound, provider, messages, output_limit(provider, size.estimate))


class _Free:
    def __init__(
        self, bound: PromptBound, provider: OrderProvider, messages: Sequence[Message], max_tokens: int | None
    ) -> None:
        self._bound = bound
        self._provider = provider
        self._messages = tuple(messages)
        self.max_tokens = max_tokens
        self.listed_usd: float | None = None

    def answered(self, reported: Any) -> Usage:
        usage = pricing_of(self._provider.model, tier=tier_of(self._provider)).usage(reported)
        self._bound.learned(self._messages, usage.input_tokens)
        self.listed_usd = usage.cost_usd
        return usage

    def discarded(self, reported: Any) -> None:
        """Nothing was reserved."""

    def broke_off(self) -> None:
        """Nothing was reserved."""

    def refused(self) -> None:
        """Nothing was reserved."""
