"""Sets, removes and recounts budgets. Each change holds the lock of the budget's row, as grants do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.spending import Budget, BudgetPeriod
from control_plane.money.spending.accounts import Account, recount
from shared.amounts import dollars
from shared.names import new_id

YOUNG = timedelta(minutes=10)
"""A grant whose transaction began before a budget was there may be missing in its sums; none takes this long."""


@dataclass(frozen=True)
class BudgetTarget:
    """What a budget is for: all that its runs spend counts."""

    organization_id: str
    kind: str
    """`shared.budgets.BudgetKind`."""
    id: str


@dataclass(frozen=True)
class Terms:
    """How much may be spent, and in which period."""

    per: str
    limit_nusd: int
    zone: str | None
    """None: as before, UTC for a new budget."""
    set_by: str


def set_budget(db: Session, core: Core, target: BudgetTarget, terms: Terms) -> Account:
    """Set the target's budget per period, and count what was spent in its current period.

    Raises IntegrityError if a concurrent transaction creates the same budget.
    """
    now = core.clock.now()
    budget = db.scalar(_locked(target, terms.per))
    if budget is None:
        budget = Budget(
            id=new_id(),
            organization_id=target.organization_id,
            kind=target.kind,
            target_id=target.id,
            per=terms.per,
            created_at=now,
            removed_at=None,
        )
        db.add(budget)
    budget.limit_nusd, budget.zone = terms.limit_nusd, terms.zone or budget.zone or "UTC"
    budget.set_by = terms.set_by
    db.flush()
    account = recount(db, budget, now)
    # People are told again when the new limit is near.
    period = db.get_one(BudgetPeriod, (budget.id, account.begins_at))
    period.warned_at = period.refused_at = period.exhausted_at = None
    return account


def remove_budgets(db: Session, core: Core, target: BudgetTarget, *per: str) -> list[Budget]:
    """Remove the target's budgets, or only those per these periods; returns them."""
    removed = list(db.scalars(_locked(target, *per)))
    for budget in removed:
        budget.removed_at = core.clock.now()
    db.flush()
    return removed


def budgets_for(db: Session, target: BudgetTarget) -> Sequence[Budget]:
    """The target's budgets: per day, per month, then in total."""
    return db.scalars(_alive(target)).all()


def daily_limits(db: Session, project_ids: Collection[str]) -> dict[str, float]:
    """The daily budgets in USD, by project; those without one are missing."""
    daily = Budget.kind == "project", Budget.per == "day", Budget.removed_at.is_(None)
    found = db.execute(select(Budget.target_id, Budget.limit_nusd).where(*daily, Budget.target_id.in_(project_ids)))
    return {project_id: dollars(limit) for project_id, limit in found}


def recount_young(core: Core) -> None:
    """Count anew what concerns budgets that were created a short time ago. The supervisor calls it every minute."""
    since = core.clock.now() - YOUNG
    with core.database.read() as db:
        young = db.scalars(select(Budget.id).where(Budget.created_at > since, Budget.removed_at.is_(None))).all()
    each_alone("young budgets", young, lambda id: core.database.transact(partial(_recount, core=core, budget_id=id)))


def _recount(db: Session, core: Core, budget_id: str) -> None:
    budget = db.get(Budget, budget_id, with_for_update=True, populate_existing=True)
    if budget is not None and budget.removed_at is None:
        recount(db, budget, core.clock.now())


def _alive(target: BudgetTarget, *per: str) -> Select[Budget]:
    own = Budget.organization_id == target.organization_id, Budget.kind == target.kind, Budget.target_id == target.id
    # day, month, total: by chance in alphabetical order, as people expect them.
    wanted = select(Budget).where(*own, Budget.removed_at.is_(None)).order_by(Budget.per)
    return wanted.where(Budget.per.in_(per)) if per else wanted


def _locked(target: BudgetTarget, *per: str) -> Select[Budget]:
    return _alive(target, *per).with_for_update().execution_options(populate_existing=True)
