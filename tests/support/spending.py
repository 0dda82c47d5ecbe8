"""Money that runs reserve and spend, through the ledger."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.money.spending import ledger
from shared.amounts import charged, reserved


def reserve(core: Core, run_id: str, usd: float, *, spent: float = 0.0) -> ledger.Granted:
    """Let a run reserve so much in total since its beginning, with so much of it spent."""
    with core.database.write() as db:
        dispatch = db.get_one(Dispatch, run_id)
        model = db.get_one(Order, dispatch.order_id).model
        amount = reserved(usd)
        return ledger.grant(db, core, dispatch, ledger.GrantRequest(model, charged(spent), amount, amount))


def spend(core: Core, run_id: str, usd: float) -> None:
    """Let a run that has ended have spent so much in total, as its row and the ledger know it."""
    with core.database.write() as db:
        ledger.settle(db, core, db.get_one(Dispatch, run_id), charged(usd))
        _cost(db, run_id, usd)


def spend_so_far(core: Core, run_id: str, usd: float) -> None:
    """Let a run that goes on have spent so much of what it reserved."""
    with core.database.write() as db:
        dispatch = db.get_one(Dispatch, run_id)
        model = db.get_one(Order, dispatch.order_id).model
        ledger.grant(db, core, dispatch, ledger.GrantRequest(model, charged(usd), 0, 0))
        _cost(db, run_id, usd)


def _cost(db: Session, run_id: str, usd: float) -> None:
    run = db.get(Run, run_id)
    if run is not None:
        run.cost_usd = usd
