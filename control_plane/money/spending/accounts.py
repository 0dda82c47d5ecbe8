"""The budgets that apply to a run, and what counts in their periods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select, update
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.spending import Budget, BudgetPeriod, SpendingBlock
from control_plane.money.spending.periods import end_of, start_of

_COLUMN: Mapping[str, Any] = {
    "project": SpendingBlock.project_id,
    "session": SpendingBlock.session_id,
    "agent": SpendingBlock.agent_id,
    "user": SpendingBlock.user_id,
    "organization": SpendingBlock.organization_id,
}
"""Where a block names the thing that a budget of this kind is for."""


@dataclass(frozen=True)
class Account:
    """A budget, and what counts in one of its periods."""

    budget: Budget
    begins_at: datetime
    reserved: int
    spent: int
    """Nanodollars, as all amounts here."""

    @property
    def left(self) -> int:
        """What can still be reserved. Negative if the budget was lowered below what counts."""
        return self.budget.limit_nusd - self.spent - self.reserved


def budgets_of(db: Session, of: Order | SpendingBlock, *, lock: bool = False) -> list[Budget]:
    """The living budgets that count what an order's runs spend, by id, so that all lock them in the same order."""
    targets = {kind: getattr(of, column.key) for kind, column in _COLUMN.items()}
    matches = [and_(Budget.kind == kind, Budget.target_id == target) for kind, target in targets.items() if target]
    # A user may belong to several organizations; a budget is about what they spend in its own.
    alive = Budget.organization_id == of.organization_id, Budget.removed_at.is_(None)
    wanted = select(Budget).where(or_(*matches), *alive).order_by(Budget.id)
    # PostgreSQL would return values read before the lock was there.
    return list(db.scalars(wanted.with_for_update().execution_options(populate_existing=True) if lock else wanted))


def counts_for(budget: Budget, order: Order) -> bool:
    """Whether a budget of the order's organization counts what the order's runs spend."""
    return bool(getattr(order, _COLUMN[budget.kind].key) == budget.target_id)


def is_bounded(db: Session, order: Order) -> bool:
    """Whether a budget applies to the order's runs."""
    return bool(budgets_of(db, order))


def accounts_of(db: Session, budgets: Iterable[Budget], moment: datetime) -> list[Account]:
    """Each budget with what counts in the period that contains `moment`."""
    return [_account(db, budget, moment) for budget in budgets]


@dataclass(frozen=True)
class Change:
    """Amounts, which may be negative, that count in the periods that contain `moment`."""

    moment: datetime
    reserved: int
    spent: int


def count(db: Session, budgets: Sequence[Budget], changes: Sequence[Change]) -> None:
    """Count changes of blocks, which were flushed, in the periods of their budgets. The caller holds their locks."""
    for budget in budgets:
        sums: dict[datetime, tuple[int, int, datetime]] = {}
        for change in changes:
            begins_at = start_of(budget.per, budget.zone, change.moment)
            reserved, spent, _ = sums.get(begins_at, (0, 0, change.moment))
            sums[begins_at] = (reserved + change.reserved, spent + change.spent, change.moment)
        for begins_at, (reserved, spent, moment) in sums.items():
            _count(db, budget, begins_at, Change(moment, reserved, spent))


def recount(db: Session, budget: Budget, moment: datetime) -> Account:
    """Count the blocks of the period that contains `moment` anew. The caller holds the budget's lock."""
    begins_at = start_of(budget.per, budget.zone, moment)
    reserved, spent = db.execute(_sums(budget, begins_at, moment)).one()
    row = db.get(BudgetPeriod, (budget.id, begins_at), populate_existing=True)
    if row is None:
        row = BudgetPeriod(budget_id=budget.id, begins_at=begins_at)
        db.add(row)
    row.reserved_nusd, row.spent_nusd = int(reserved), int(spent)
    db.flush()
    return Account(budget, begins_at, row.reserved_nusd, row.spent_nusd)


def note_refusal(db: Session, account: Account, now: datetime) -> None:
    """Record that a model call was refused because too little is left in the account, so that people are told.

    The caller holds the budget's lock.
    """
    key = (account.budget.id, account.begins_at)
    row = db.get(BudgetPeriod, key, populate_existing=True)
    if row is None:
        recount(db, account.budget, now)
        row = db.get_one(BudgetPeriod, key)
    row.refused_at = row.refused_at or now
    db.flush()


def _account(db: Session, budget: Budget, moment: datetime) -> Account:
    begins_at = start_of(budget.per, budget.zone, moment)
    wanted = select(BudgetPeriod.reserved_nusd, BudgetPeriod.spent_nusd).where(
        BudgetPeriod.budget_id == budget.id, BudgetPeriod.begins_at == begins_at
    )
    found = db.execute(wanted).one_or_none()
    return Account(budget, begins_at, *(found or (0, 0)))


def _count(db: Session, budget: Budget, begins_at: datetime, change: Change) -> None:
    added = (
        update(BudgetPeriod)
        .where(BudgetPeriod.budget_id == budget.id, BudgetPeriod.begins_at == begins_at)
        .values(
            reserved_nusd=BudgetPeriod.reserved_nusd + change.reserved,
            spent_nusd=BudgetPeriod.spent_nusd + change.spent,
        )
        .returning(BudgetPeriod.budget_id)
        .execution_options(synchronize_session=False)
    )
    if db.scalar(added) is None:
        # The first of its period. Blocks of before the budget count too, and the change is in the blocks already.
        recount(db, budget, change.moment)


def _sums(budget: Budget, begins_at: datetime, moment: datetime) -> Select[int, int]:
    """Reserved and spent in the period, from the blocks."""
    unspent = SpendingBlock.granted_nusd - SpendingBlock.spent_nusd
    open_part = case((SpendingBlock.closed_at.is_(None), unspent), else_=0)
    wanted = select(func.coalesce(func.sum(open_part), 0), func.coalesce(func.sum(SpendingBlock.spent_nusd), 0)).where(
        _counts(budget), SpendingBlock.granted_at >= begins_at
    )
    ends_at = end_of(budget.per, budget.zone, moment)
    return wanted if ends_at is None else wanted.where(SpendingBlock.granted_at < ends_at)


def _counts(budget: Budget) -> ColumnElement[bool]:
    return and_(_COLUMN[budget.kind] == budget.target_id, SpendingBlock.organization_id == budget.organization_id)
