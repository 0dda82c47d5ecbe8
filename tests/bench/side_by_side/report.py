"""What was measured, as ratios: round by round, then their median, beside the aim and beside the accepted run."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Measure = Callable[[], Mapping[str, float]]
WORSE = 1.2
"""A ratio may grow by this factor, or within the spread of the rounds, before `make bench` fails."""


@dataclass(frozen=True)
class Aim:
    """What ours is compared with, and the largest ratio that satisfies."""

    against: str
    """A column of the row; empty: the figure itself counts, in the row's unit."""
    most: float


@dataclass(frozen=True)
class BenchRow:
    """One thing that is measured, with all that is measured beside it in the same round."""

    name: str
    measure: Measure
    """One round: the figure of each column, in `unit`."""
    unit: str
    aims: tuple[Aim, ...]
    bound: str = ""
    """What bounds the figure."""
    ours: str = "ours"


@dataclass(frozen=True)
class Found:
    """The figures of a row: for each column one of each round."""

    row: BenchRow
    rounds: Mapping[str, Sequence[float]]

    def figure(self, column: str) -> float:
        return statistics.median(self.rounds[column])

    def ratios(self, aim: Aim) -> list[float]:
        """One of each round: a busy moment makes both sides of it longer."""
        ours = self.rounds[self.row.ours]
        if not aim.against:
            return list(ours)
        return [one / other for one, other in zip(ours, self.rounds[aim.against], strict=True)]

    def document(self) -> dict[str, Any]:
        ratios = {aim.against: [round(each, 4) for each in self.ratios(aim)] for aim in self.row.aims}
        rounds = {name: [round(each, 4) for each in values] for name, values in self.rounds.items()}
        return {"name": self.row.name, "unit": self.row.unit, "rounds": rounds, "ratios": ratios}


@dataclass
class BenchReport:
    """All rows that were measured."""

    found: list[Found] = field(default_factory=list)

    def table(self) -> str:
        """The rows as a Markdown table."""
        lines = ["| what | ours | beside | ratio | aim | met | what bounds it |", "|---|---|---|---|---|---|---|"]
        lines += [self._line(each, aim) for each in self.found for aim in each.row.aims]
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """The figures of every round, for machines."""
        return {"rows": [each.document() for each in self.found]}

    def worse_than(self, accepted: Mapping[str, Any]) -> list[str]:
        """Sentences about ratios that are worse than in the accepted run, beyond what rounds differ."""
        before = {row["name"]: row["ratios"] for row in accepted.get("rows", [])}
        found = []
        for each, aim in ((row, aim) for row in self.found for aim in row.row.aims):
            now, was = each.ratios(aim), before.get(each.row.name, {}).get(aim.against, [])
            if was and statistics.median(now) > WORSE * statistics.median(was) and min(now) > max(was):
                beside = f" beside {aim.against}" if aim.against else ""
                figures = f"{statistics.median(now):.3g}, and {statistics.median(was):.3g} in the accepted run"
                found.append(f"{each.row.name}{beside}: {figures}")
        return found

    @staticmethod
    def _line(each: Found, aim: Aim) -> str:
        row = each.row
        ratios = each.ratios(aim)
        ratio, ours = statistics.median(ratios), shown(each.figure(row.ours), row.unit)
        met = "yes" if ratio <= aim.most else f"no: {ratio / aim.most:.2g} times the aim"
        if not aim.against:
            return f"| {row.name} | {ours} | – | – | ≤ {shown(aim.most, row.unit)} | {met} | {row.bound} |"
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        other = f"{aim.against}: {shown(each.figure(aim.against), row.unit)}"
        return f"| {row.name} | {ours} | {other} | {ratio:.2f} ({spread}) | ≤ {aim.most:g} | {met} | {row.bound} |"


def shown(value: float, unit: str) -> str:
    """A figure with its unit, to three digits."""
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def read_accepted(text: str) -> dict[str, Any]:
    """The document of an accepted run. Raises ValueError if it is none."""
    document = json.loads(text)
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise ValueError("it has no rows")
    return document
