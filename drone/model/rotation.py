"""Which of an order's providers answers next: the first until it fails, or each when it is its turn."""

from __future__ import annotations

from collections.abc import Sequence
from random import SystemRandom

from shared.messages import Message
from shared.work_order import OrderProvider


class ModelRotation:
    """The provider and its fallbacks, without those that failed in this run.

    With the provider's `rotation`, several models work on one order (mini-swe-agent's roulette and interleaving models,
    M-032); without it, a fallback is asked only once those before it have failed.
    """

    def __init__(self, provider: OrderProvider) -> None:
        """`provider` and its fallbacks have their keys in `api_key`."""
        self._left = [provider, *provider.fallbacks]
        self._way = provider.rotation
        self._random = SystemRandom()
        self.current = provider

    @property
    def candidates(self) -> Sequence[OrderProvider]:
        """Those whose answer may be the next one: a question must fit the window of each."""
        return [self.current] if self._way == "off" else tuple(self._left)

    def choose(self, messages: Sequence[Message]) -> OrderProvider:
        """The provider of the next answer.

        Whose turn it is follows from the number of answers in the conversation: a resumed run continues in order.
        """
        if self._way == "random":
            self.current = self._random.choice(self._left)
        elif self._way == "alternate":
            self.current = self._left[sum(each.role == "assistant" for each in messages) % len(self._left)]
        return self.current

    def replace_failed(self) -> OrderProvider | None:
        """Leave the current provider out for the rest of the run, and return the one in its place.

        None: there is no other one, and it stays.
        """
        if len(self._left) == 1:
            return None
        at = self._left.index(self.current)
        del self._left[at]
        self.current = self._left[at % len(self._left)]
        return self.current
