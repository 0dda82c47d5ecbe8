"""Sizes as people read them."""

from __future__ import annotations

_ONE_DECIMAL_BELOW = 10


def gigabytes(megabytes: float) -> str:
    """`120 GB`, `1.2 GB`."""
    size = megabytes / 1000
    return f"{size:.1f} GB" if size < _ONE_DECIMAL_BELOW else f"{size:.0f} GB"
