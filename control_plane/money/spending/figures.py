"""What people are told about a budget: how much is left, whether it will suffice, what would be refused now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.spending import Budget, BudgetPeriod
from control_plane.money.spending.periods import end_of, start_of
from shared.amounts import NANODOLLARS

State = Literal["ok", "warning", "exhausted"]
LITTLE = 5
"""Little is left once it is at most the fifth part of the limit: 80 % are spent."""
_TOO_EARLY = 0.02
"""In this first part of a period, what was spent says little about the rest."""


@dataclass(frozen=True)
class Figures:
    """A budget in its current period. Amounts are nanodollars."""

    budget: Budget
    now: datetime
    spent: int = 0
    reserved: int = 0
    refused: bool = False
    """A model call was refused in this period, because too little was left."""

    @property
    def left(self) -> int:
        """What can still be reserved; never negative."""
        return max(0, self.budget.limit_nusd - self.spent - self.reserved)

    @property
    def begins_at(self) -> datetime | None:
        """None for a budget in total."""
        budget = self.budget
        return None if budget.per == "total" else start_of(budget.per, budget.zone, self.now)

    @property
    def ends_at(self) -> datetime | None:
        return end_of(self.budget.per, self.budget.zone, self.now)

    @property
    def percent(self) -> float:
        """The spent part of the limit."""
        return round(100 * self.spent / self.budget.limit_nusd, 1)

    @property
    def forecast(self) -> int | None:
        """What is spent at the end of the period if spending continues at the same pace; None if that is unknown."""
        if self.begins_at is None or self.ends_at is None:
            return None
        past = (self.now - self.begins_at) / (self.ends_at - self.begins_at)
        return round(self.spent / past) if past >= _TOO_EARLY else None

    @property
    def state(self) -> State:
        if self.refused or self.spent >= self.budget.limit_nusd:
            return "exhausted"
        return "warning" if is_near(self.spent, self.budget.limit_nusd) else "ok"

    @property
    def refuses(self) -> str:
        """Which model calls would be refused now, in words."""
        limit = self.budget.limit_nusd
        if self.spent > limit:
            lowered = f"lowered below what is spent: {in_dollars(self.spent)} of {in_dollars(limit)}"
            return f"every model call until {self._until} ({lowered})"
        if self.spent == limit:
            return f"every model call until {self._until}"
        if self.left == 0:
            return f"every further model call until runs return a part of the reserved {in_dollars(self.reserved)}"
        return f"model calls that may cost more than {in_dollars(self.left)}"

    @property
    def _until(self) -> str:
        if self.ends_at is None:
            return "the budget is raised"
        return f"{self.ends_at.astimezone(ZoneInfo(self.budget.zone)):%Y-%m-%d %H:%M} {self.budget.zone}"


def figures_of(db: Session, budgets: Sequence[Budget], now: datetime) -> list[Figures]:
    """The figures of each budget in the period that contains `now`."""
    begins = {budget.id: start_of(budget.per, budget.zone, now) for budget in budgets}
    wanted = select(BudgetPeriod).where(
        BudgetPeriod.budget_id.in_(begins), BudgetPeriod.begins_at.in_(set(begins.values()))
    )
    rows = {(row.budget_id, row.begins_at): row for row in db.scalars(wanted)}
    return [_figures(budget, rows.get((budget.id, begins[budget.id])), now) for budget in budgets]


def is_near(spent: int, limit: int) -> bool:
    """Whether people should know that little is left."""
    return spent >= limit - limit // LITTLE


def in_dollars(nusd: int) -> str:
    """`$0.42`; a hundredth of a cent is shown, smaller parts are cut off."""
    tenths = nusd * 10_000 // NANODOLLARS
    cents, rest = divmod(tenths, 100)
    text = f"{cents // 100:,}.{cents % 100:02}{rest:02}"
    return f"${text[:-2]}{text[-2:].rstrip('0')}"


def _figures(budget: Budget, row: BudgetPeriod | None, now: datetime) -> Figures:
    if row is None:
        return Figures(budget, now)
    return Figures(budget, now, row.spent_nusd, row.reserved_nusd, row.refused_at is not None)
