"""Money as the control plane and a run exchange it: prices, requests for more, and what was granted.

Amounts are USD. All sums of a run are totals since its beginning, so that a repeated message changes nothing.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shared.events import MAX_COUNT, Dollars
from shared.wire import Wire

BudgetKind = Literal["project", "agent", "user", "organization", "session"]
Per = Literal["day", "month", "total"]
OnLimit = Literal["stop", "ask"]
"""What an order does when its money is used up: it ends and keeps its work, or it waits for a person."""


class ModelPrice(Wire):
    """USD per token. `None`: as LiteLLM's list says; the discount applies to both."""

    model: str
    input: Dollars | None = None
    output: Dollars | None = None
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    discount: float = Field(0.0, ge=0, le=100)
    """Percent."""


class Money(Wire):
    """What a run has to know about money before its first call."""

    bounded: bool = False
    """A budget applies: every call needs a reservation, and a model without a known price cannot be used."""
    spent: Dollars = 0.0
    """What other runs of the order have cost, which counts against its cost limit."""
    on_limit: OnLimit = "stop"
    prices: tuple[ModelPrice, ...] = ()
    """Of the provider's model and those of its fallbacks, where the organization has set one."""


class AllowanceRequest(Wire):
    """A run reports what it has spent, and requests money for its next calls."""

    number: int = Field(0, ge=0, le=MAX_COUNT)
    """Counts the run's requests: one that arrives after a later one has no effect."""
    model: str = Field(max_length=255)
    spent: Dollars = 0.0
    """The cost of its calls so far. Calls in flight are not in it."""
    least: Dollars = 0.0
    """The total that has to be granted for the next call to be sent."""
    wanted: Dollars = 0.0
    """The total that spares the next calls a request; at least `least`."""
    keep: Dollars | None = None
    """The run gives back what it was granted above this total, and will not use it. None: it keeps everything."""
    priced: bool = True
    """False: the model has no known price, so nothing can be reserved for it."""
    price: ModelPrice | None = None
    """What the model's calls are charged at."""


class Allowance(Wire):
    """What a run may spend."""

    granted: Dollars = 0.0
    """In total since its beginning, including what it has spent."""
    bounded: bool = False
    """As in `Money`; a budget may have been set or removed meanwhile."""
    refused: str = ""
    """Why there is no money for the call, and what would change that; '' if there is, or will be."""
    wait_s: float | None = None
    """Ask again after this time: other runs have reserved what is left, and will use less than that."""
    waits_for: str = ""
    """The budget that is waited for, in words."""
    prices: tuple[ModelPrice, ...] = ()
    """As in `Money`, now."""
