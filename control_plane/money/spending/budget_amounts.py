"""The amounts that a budget can have."""

from __future__ import annotations

from shared.amounts import charged
from shared.errors import Invalid

MAX_USD = 1_000_000
_EXAMPLE = "for example 20, in USD"


def check_limit(usd: float) -> int:
    """The limit, a finite number, in nanodollars. Raises Invalid (`E-BUDGET`) if it is no amount that can be spent."""
    if usd < 0:
        raise Invalid(f"a budget cannot be negative: {usd:g} USD given", code="E-BUDGET", next=_EXAMPLE)
    if usd > MAX_USD:
        raise Invalid(
            f"a budget can be at most {MAX_USD:,} USD: {usd:g} given",
            code="E-BUDGET",
            next=f"{_EXAMPLE}; without a budget, spending is not limited: fleet budget rm KIND NAME",
        )
    if charged(usd) == 0:
        raise Invalid(
            "a budget must be more than 0 USD",
            code="E-BUDGET",
            why="with 0, every model call would be refused",
            next="remove the limit: fleet budget rm KIND NAME    or start no more tasks: fleet organization pause NAME",
        )
    return charged(usd)
