"""Money for a run: a request of its drone over HTTP, with the drone's own credential."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from control_plane.core import AuthenticatedDrone, Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.money.spending.accounts import Account, is_bounded, note_refusal
from control_plane.money.spending.figures import in_dollars
from control_plane.money.spending.ledger import Granted, GrantRequest, grant, granted_to
from control_plane.money.spending.periods import end_of
from control_plane.money.spending.prices import prices_for
from control_plane.money.spending.targets import target_names
from control_plane.operations.runs.blobs import own_dispatch
from shared.amounts import charged, dollars, reserved
from shared.budgets import Allowance, AllowanceRequest
from shared.errors import Conflict

RETRY_SECONDS = 1.0
"""Until a run asks again for money that others have reserved."""


def allow(core: Core, identity: AuthenticatedDrone, run_id: str, request: AllowanceRequest) -> Allowance:
    """Record what the run has spent, and grant it as much more as its budgets allow.

    Amounts are totals since the run's beginning, so a repeated request changes nothing. Raises NotFound for a run that
    is not the drone's, Conflict for one that has ended or was given up: it has no further money.
    """
    return core.database.transact(lambda db: _allow(db, core, identity, run_id, request))


def _allow(db: Session, core: Core, identity: AuthenticatedDrone, run_id: str, request: AllowanceRequest) -> Allowance:
    order_id = own_dispatch(db, identity, run_id).order_id
    # Under the order's lock, which recording the end of a run takes too: no block is granted to a run that has ended.
    order = db.get_one(Order, order_id, with_for_update=True, populate_existing=True)
    dispatch = db.get_one(Dispatch, run_id, populate_existing=True)
    if dispatch.closed_at is not None:
        raise Conflict(
            f"run {run_id} is over and gets no further money", code="E-RUN-OVER", next=f"fleet show {order_id}"
        )
    if request.number <= dispatch.allowance_number:
        # Delayed on its way. What it gives back may be in use by now.
        return Allowance(
            granted=dollars(granted_to(db, run_id)),
            bounded=is_bounded(db, order),
            wait_s=RETRY_SECONDS,
            waits_for="a request for money arrived after a later one",
        )
    dispatch.allowance_number = request.number
    asked = GrantRequest(
        request.model,
        charged(request.spent),
        reserved(request.least),
        reserved(request.wanted),
        None if request.keep is None else reserved(request.keep),
    )
    granted = grant(db, core, dispatch, asked)
    _keep_price(db, run_id, request)
    return _answer(db, core, request, granted).model_copy(update={"prices": prices_for(db, order)})


def _answer(db: Session, core: Core, request: AllowanceRequest, granted: Granted) -> Allowance:
    known = Allowance(granted=dollars(granted.total), bounded=granted.bounded)
    if granted.short is None:
        unpriced = granted.bounded and not request.priced
        return known.model_copy(update={"refused": _said_unpriced(request.model)}) if unpriced else known
    budget = granted.short.budget
    name = target_names(db, [budget])[budget.kind, budget.target_id]
    if granted.passing:
        said = _said_waiting(name, granted.short, others_first=granted.claimed > 0)
        return known.model_copy(update={"wait_s": RETRY_SECONDS, "waits_for": said})
    note_refusal(db, granted.short, core.clock.now())
    return known.model_copy(update={"refused": _said_short(name, granted.short, core.clock.now())})


def _keep_price(db: Session, run_id: str, request: AllowanceRequest) -> None:
    """Keep with the run what its calls are charged at. Its row appears with its first event."""
    run = db.get(Run, run_id)
    if run is not None and request.price is not None:
        run.prices = {**(run.prices or {}), request.model: request.price.model_dump(mode="json")}


# --- why there is no money for a call, in sentences for people ------------------------------------

_PER = {"day": "per day", "month": "per month", "total": "in total"}


def _said_short(name: str, account: Account, now: datetime) -> str:
    """Which budget has too little left, how much it has, and what would change that."""
    budget = account.budget
    limit = f"{in_dollars(budget.limit_nusd)} {_PER[budget.per]}"
    used = f"{in_dollars(account.spent)} spent, {in_dollars(account.reserved)} reserved for running calls"
    renewed = end_of(budget.per, budget.zone, now)
    again = "" if renewed is None else f" It begins again at {_time(renewed, budget.zone)}."
    command = f"fleet budget set {budget.kind} {name} USD --per {budget.per}"
    return f"The budget of {budget.kind} {name} has too little left: {limit}, {used}.{again} To raise it: {command}"


def _said_waiting(name: str, account: Account, *, others_first: bool) -> str:
    """What a run waits for. Without figures that change: how long it waits is counted while the text is the same."""
    budget = account.budget
    limit = f"{in_dollars(budget.limit_nusd)} {_PER[budget.per]}"
    order = ", and some of them have waited longer" if others_first else ""
    return f"other orders hold what is left of the budget of {budget.kind} {name} ({limit}){order}"


def _said_unpriced(model: str) -> str:
    """Why a model cannot be used where a budget applies."""
    return (
        f"A budget applies, and the price of {model} is unknown. "
        f"To set it: fleet price set {model} --input USD --output USD (per million tokens)"
    )


def _time(moment: datetime, zone: str) -> str:
    return f"{moment.astimezone(ZoneInfo(zone) if zone != 'UTC' else UTC):%Y-%m-%d %H:%M} {zone}"
