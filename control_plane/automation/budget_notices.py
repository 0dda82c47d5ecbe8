"""Webhook notices about budgets: once per period when little is left, and once when it is used up."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select, and_, or_, select, update
from sqlalchemy.orm import Session

from control_plane.attention.events import budget_used_up
from control_plane.automation.notices import notify
from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.spending import Budget, BudgetPeriod
from control_plane.money.spending.figures import LITTLE, Figures, figures_of
from control_plane.money.spending.periods import ALWAYS, start_of
from control_plane.money.spending.targets import target_names
from shared.amounts import dollars

WARNING, EXHAUSTED = "budget.warning", "budget.exhausted"


def warn(core: Core) -> None:
    """Write the notices that are due. The supervisor calls it every few seconds.

    A new limit is warned of again: setting a budget forgets what people were told.
    """
    with core.database.read() as db:
        found = _due(db, core.clock.now())

    def tell(due: tuple[str, datetime]) -> None:
        core.database.transact(partial(_warn, core=core, budget_id=due[0], begins_at=due[1]))

    each_alone("budgets", found, tell)


def untold() -> Select[Budget, datetime]:
    """The budgets with news that was not sent yet, and when each period started; it may have ended since."""
    # As `is_near`. A product of an amount may not fit into the database's integers.
    near = BudgetPeriod.spent_nusd >= Budget.limit_nusd - Budget.limit_nusd // LITTLE
    used_up = or_(BudgetPeriod.refused_at.is_not(None), BudgetPeriod.spent_nusd >= Budget.limit_nusd)
    due = or_(and_(BudgetPeriod.warned_at.is_(None), near), and_(BudgetPeriod.exhausted_at.is_(None), used_up))
    wanted = select(Budget, BudgetPeriod.begins_at).join(BudgetPeriod, BudgetPeriod.budget_id == Budget.id)
    return wanted.where(Budget.removed_at.is_(None), due)


def _due(db: Session, now: datetime) -> list[tuple[str, datetime]]:
    """The current periods of which people were not told everything yet."""
    found = db.execute(untold().where(BudgetPeriod.begins_at.in_(_begins(db, now))).order_by(Budget.id)).all()
    current = each_alone("budgets", found, lambda row: row[1] == start_of(row[0].per, row[0].zone, now) and row)
    return [(row[0].id, row[1]) for row in current if row]


def _begins(db: Session, now: datetime) -> set[datetime]:
    """When the current periods of all budgets began; there are few kinds of periods and zones."""
    kinds = db.execute(select(Budget.per, Budget.zone).where(Budget.removed_at.is_(None)).distinct())
    return {ALWAYS, *each_alone("budgets", kinds, lambda kind: start_of(kind[0], kind[1], now))}


def _warn(db: Session, core: Core, budget_id: str, begins_at: datetime) -> None:
    now = core.clock.now()
    budget = db.get_one(Budget, budget_id, with_for_update=True, populate_existing=True)
    if budget.removed_at is not None or begins_at != start_of(budget.per, budget.zone, now):
        return
    figures = figures_of(db, [budget], now)[0]
    told = select(BudgetPeriod.warned_at, BudgetPeriod.exhausted_at).where(
        BudgetPeriod.budget_id == budget_id, BudgetPeriod.begins_at == begins_at
    )
    warned_at, exhausted_at = db.execute(told).one()
    # The lock keeps the sums as they are: what is written here is what people read in `fleet budget show`.
    if figures.state == "exhausted" and exhausted_at is None:
        _tell(db, core, EXHAUSTED, figures)
        name = target_names(db, [budget])[budget.kind, budget.target_id]
        budget_used_up(db, core, budget, name, begins_at)
        exhausted_at = now
    elif figures.state == "warning" and warned_at is None:
        _tell(db, core, WARNING, figures)
    values = {"warned_at": warned_at or now, "exhausted_at": exhausted_at}
    if figures.state != "ok":
        period = update(BudgetPeriod).where(BudgetPeriod.budget_id == budget_id, BudgetPeriod.begins_at == begins_at)
        db.execute(period.values(**values))


def _tell(db: Session, core: Core, event: str, figures: Figures) -> None:
    budget, ends_at = figures.budget, figures.ends_at
    data: dict[str, Any] = {
        "kind": budget.kind,
        "name": target_names(db, [budget])[budget.kind, budget.target_id],
        "per": budget.per,
        "limit_usd": dollars(budget.limit_nusd),
        "spent_usd": dollars(figures.spent),
        "reserved_usd": dollars(figures.reserved),
        "left_usd": dollars(figures.left),
        "percent": figures.percent,
        "forecast_usd": None if figures.forecast is None else dollars(figures.forecast),
        "refuses": figures.refuses,
        "period_ends_at": ends_at.isoformat() if ends_at else None,
    }
    notify(db, core, budget.organization_id, event, data)
