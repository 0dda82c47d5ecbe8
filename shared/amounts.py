"""Money in nanodollars, in which runs and the ledger count, and in the dollars of everything else.

Whole numbers have no rounding: what was granted is what was asked for. A number of nanodollars that crosses the wire as
dollars is the same number on the other side.
"""

from __future__ import annotations

import math

NANODOLLARS = 1_000_000_000
"""In one dollar."""
MOST_USD = 1e6
"""More than one run or one budget can have; sums of such amounts fit into the database's integers."""
_NOISE = 1e-3
"""Nanodollars. Smaller parts are rounding errors of dollars."""


def reserved(usd: float) -> int:
    """An amount that has to suffice: rounded up."""
    scaled = min(usd, MOST_USD) * NANODOLLARS
    nearest = round(scaled)
    return nearest if math.isclose(scaled, nearest, rel_tol=1e-15, abs_tol=_NOISE) else math.ceil(scaled)


def charged(usd: float) -> int:
    """An amount that was spent: to the nearest nanodollar. More than a run can cost is nonsense of its endpoint."""
    return round(min(usd, MOST_USD) * NANODOLLARS)


def dollars(nusd: int) -> float:
    """The dollars that `charged` and `reserved` turn into the same number again, up to `MOST_USD`."""
    return nusd / NANODOLLARS
