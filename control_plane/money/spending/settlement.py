"""What a run's end, its loss and its late reports mean for the money that it holds."""

from __future__ import annotations

from datetime import timedelta

from pydantic import TypeAdapter
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.db.spending import SpendingBlock
from control_plane.money.spending.accounts import is_bounded
from control_plane.money.spending.ledger import granted_to, settle, spent_by
from control_plane.money.spending.prices import prices_for
from shared.amounts import charged, dollars
from shared.budgets import Money, OnLimit
from shared.events import MAX_DOLLARS

_ON_LIMIT: TypeAdapter[OnLimit] = TypeAdapter(OnLimit)
FORGOTTEN = timedelta(seconds=60)
"""After the end of its dispatch, a block that is still open is settled as that of a lost run."""


def money_of(db: Session, order: Order) -> Money:
    """What the order's next run has to know about money."""
    cost = func.coalesce(Run.cost_usd, 0.0) + Run.assumed_usd
    # A person who retries or resumes an order begins to count anew.
    since = max(order.renewed_generation, order.fresh_generation)
    others = select(func.sum(cost)).where(Run.order_id == order.id, Run.generation > since)
    return Money(
        bounded=is_bounded(db, order),
        spent=min(db.scalar(others) or 0.0, MAX_DOLLARS),
        prices=prices_for(db, order),
        on_limit=_ON_LIMIT.validate_python(order.on_limit),
    )


def run_reported(db: Session, core: Core, dispatch: Dispatch, run: Run) -> None:
    """The run reported its end, in time or late: what it spent is known, and the rest of its money is free."""
    run.assumed_usd = 0.0
    spent = charged(run.cost_usd) if run.cost_usd is not None else spent_by(db, run.id)
    settle(db, core, dispatch, spent)


def run_lost(db: Session, core: Core, dispatch: Dispatch) -> None:
    """The run was given up. Everything that it held may be spent: unheard answers, and the call in flight."""
    run = db.get(Run, dispatch.id)
    known = charged(run.cost_usd or 0.0) if run is not None else 0
    most = max(granted_to(db, dispatch.id), known)
    settle(db, core, dispatch, most, assumed=most - known)
    if run is not None:
        run.assumed_usd = dollars(most - known)


def run_began_late(db: Session, run: Run) -> None:
    """The first event of a run that had been given up before."""
    run.assumed_usd = dollars(granted_to(db, run.id))


def spending_heard(run: Run, usd: float | None) -> None:
    """A late event of a run that was given up reported a cost, which is no longer assumed."""
    run.assumed_usd = max(0.0, run.assumed_usd - (usd or 0.0))


def settle_forgotten(db: Session, core: Core, limit: int = 100) -> int:
    """Settle open blocks whose dispatch was closed without a word about money; returns the number of runs."""
    opened = select(SpendingBlock.run_id).where(SpendingBlock.closed_at.is_(None))
    closed = Dispatch.closed_at < core.clock.now() - FORGOTTEN
    over = select(Dispatch).where(Dispatch.id.in_(opened), closed).limit(limit)
    found = db.scalars(over).all()

    def settle(dispatch: Dispatch) -> None:
        with db.begin_nested():
            db.get_one(Order, dispatch.order_id, with_for_update=True, populate_existing=True)
            run_lost(db, core, dispatch)

    return len(each_alone("settling", found, settle))


def settle_all_forgotten(core: Core) -> None:
    """Settle all of these blocks, so that no reservation stays for ever."""
    while core.database.transact(lambda db: settle_forgotten(db, core)):
        pass
