"""Nanodollars, in which the ledger counts, and the dollars of everything else."""

from __future__ import annotations

import math

NANODOLLARS = 1_000_000_000
"""In one dollar."""


def reserved(usd: float) -> int:
    """An amount that has to suffice: rounded up."""
    return math.ceil(usd * NANODOLLARS)


def charged(usd: float) -> int:
    """An amount that was spent: to the nearest nanodollar."""
    return round(usd * NANODOLLARS)


def dollars(nusd: int) -> float:
    return nusd / NANODOLLARS
