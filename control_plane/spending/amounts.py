"""Nanodollars, in which the ledger counts, and the dollars of everything else."""

from __future__ import annotations

import math

NANODOLLARS = 1_000_000_000
"""In one dollar."""
MOST_USD = 1e6
"""More than one run or one budget can have; sums of such amounts fit into the database's integers."""


def reserved(usd: float) -> int:
    """An amount that has to suffice: rounded up."""
    return math.ceil(min(usd, MOST_USD) * NANODOLLARS)


def charged(usd: float) -> int:
    """An amount that was spent: to the nearest nanodollar. More than a run can cost is nonsense of its endpoint."""
    return round(min(usd, MOST_USD) * NANODOLLARS)


def dollars(nusd: int) -> float:
    return nusd / NANODOLLARS
