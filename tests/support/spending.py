"""Money that runs reserve and spend, through the ledger."""

from __future__ import annotations

from control_plane.core import Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.spending import ledger
from shared.amounts import charged, reserved


def reserve(core: Core, run_id: str, usd: float, *, spent: float = 0.0) -> ledger.Granted:
    """Let a run reserve so much in total since its beginning, with so much of it spent."""
    with core.database.write() as db:
        dispatch = db.get_one(Dispatch, run_id)
        model = db.get_one(Order, dispatch.order_id).model
        amount = reserved(usd)
        return ledger.grant(db, core, dispatch, ledger.GrantRequest(model, charged(spent), amount, amount))


def spend(core: Core, run_id: str, usd: float, *, final: bool = True) -> None:
    """Let a run have spent so much in total, as its row and the ledger know it; by default it has ended."""
    with core.database.write() as db:
        dispatch = db.get_one(Dispatch, run_id)
        ledger.settle(db, core, dispatch, charged(usd), final=final)
        run = db.get(Run, run_id)
        if run is not None:
            run.cost_usd = usd
