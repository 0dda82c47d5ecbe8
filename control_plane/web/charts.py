"""Bar charts as positions in a drawing; a template draws them, and a table beside says the same in numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from control_plane.declarations.costs import CostDocument

WIDTH, HEIGHT = 720, 160
GAP = 0.25
"""Part of a bar's place that stays empty."""
LABELS = 6


@dataclass(frozen=True)
class Bar:
    """One bar, in the drawing's units; `height` 0 is no bar."""

    label: str
    value: float
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Bars:
    """A chart: its bars, the labels below it, and the lines behind it with their values."""

    bars: Sequence[Bar]
    labels: Sequence[tuple[float, str]]
    lines: Sequence[tuple[float, str]]
    width: int = WIDTH
    height: int = HEIGHT


def bars_of_days(days: Sequence[tuple[str, float]]) -> Bars:
    """A bar for each day."""
    top = nice_top(max(value for _, value in days))
    place = WIDTH / len(days)
    bars = [_bar(n, name, value, top, place) for n, (name, value) in enumerate(days)]
    every = math.ceil(len(days) / LABELS)
    labels = [(bar.x + bar.width / 2, _short(bar.label)) for bar in bars[::every]]
    lines = [(HEIGHT * (1 - part), f"${top * part:g}") for part in (0.0, 0.5, 1.0)]
    return Bars(bars, labels, lines)


def nice_top(value: float) -> float:
    """The next of 1, 2, 5, 10, … that is not below the value: where the axis ends."""
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in (1, 2, 5, 10) if step * scale >= value * 0.999999)


def shares(sums: Sequence[CostDocument]) -> list[tuple[CostDocument, float, float]]:
    """Each sum with what was spent and what is reserved, in percent of the largest of both together."""
    largest = max((each.spent_usd + each.reserved_usd for each in sums), default=0.0) or 1.0
    return [(each, 100 * each.spent_usd / largest, 100 * each.reserved_usd / largest) for each in sums]


def _bar(number: int, name: str, value: float, top: float, place: float) -> Bar:
    height = max(1.0, HEIGHT * value / top) if value > 0 else 0.0
    return Bar(name, value, round(place * (number + GAP / 2), 2), round(HEIGHT - height, 2), place * (1 - GAP), height)


def _short(day: str) -> str:
    """`2026-11-25` as `11-25`."""
    return day[5:]
