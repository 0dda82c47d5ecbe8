"""Checks of providers and projects: asked for with a change, by hand, and shown with what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.checks import CheckDocument
from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.operations.orders.canceling import cancel_unfinished
from control_plane.services.checks import Requester, ask_check
from shared.states import ENDED, OrderStatus

C = TypeVar("C", bound=CheckDocument)
D = TypeVar("D")
_ASSIGNED = (OrderStatus.QUEUED, OrderStatus.ASSIGNED)


@dataclass
class CheckOrders:
    """The orders that a change begins and ends; nothing of it is sent before the commit."""

    asked: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)


def send(core: Core, caller: Caller, done: tuple[D, CheckOrders]) -> D:
    """After the commit: cancel outdated checks, have new ones sent, and return the document."""
    document, orders = done
    for order_id in orders.outdated:
        cancel_unfinished(core, caller, order_id, "what it checks was changed or removed")
    for order_id in orders.asked:
        core.broker.changed(order_id)
    return document


def added(db: Session, core: Core, caller: Caller, row: Provider | Project, *, check: bool) -> CheckOrders:
    """Check what was just added, unless it is not wanted."""
    if not check:
        row.check_state = "skipped"
        return CheckOrders()
    return CheckOrders(asked=[ask_check(db, core, row, _requester(caller)).id])


def changed(db: Session, core: Core, caller: Caller, row: Provider | Project, *, check: bool | None) -> CheckOrders:
    """Forget what was found, since it was about something else, and check again.

    With `check` None, something that was added without a check stays so.
    """
    outdated = removed(row).outdated
    skipped = check is False or (check is None and row.check_state == "skipped")
    row.check_state, row.check_order_id, row.check_report = "skipped" if skipped else "unchecked", None, None
    asked = [] if skipped else [ask_check(db, core, row, _requester(caller)).id]
    return CheckOrders(asked, outdated)


def removed(row: Provider | Project) -> CheckOrders:
    """What is removed needs no check."""
    return CheckOrders(outdated=[row.check_order_id] if row.check_order_id is not None else [])


def asked(db: Session, core: Core, caller: Caller, row: Provider | Project) -> CheckOrders:
    """Check it now; a check that has not ended is not repeated."""
    before = db.get(Order, row.check_order_id) if row.check_order_id is not None else None
    if before is not None and before.status not in ENDED:
        return CheckOrders()
    return CheckOrders(asked=[ask_check(db, core, row, _requester(caller)).id])


@dataclass(frozen=True)
class CheckReader:
    """Makes the documents of checks, with a few queries for any number of them."""

    orders: Mapping[str, tuple[Order, str | None]]
    """The order of each check that has not ended, with the name of its drone."""

    @classmethod
    def of(cls, db: Session, rows: Iterable[Provider | Project]) -> CheckReader:
        ids = [row.check_order_id for row in rows if row.check_order_id is not None]
        unfinished = select(Order, Drone.name).outerjoin(Drone, Drone.id == Order.drone_id)
        found = db.execute(unfinished.where(Order.id.in_(ids), Order.status.not_in(ENDED))).all() if ids else ()
        return cls({order.id: (order, drone) for order, drone in found})

    def document(self, kind: type[C], row: Provider | Project) -> C:
        """The check of a row: what its order is doing, else what was found."""
        order, drone = self.orders.get(row.check_order_id or "", (None, None))
        if order is not None:
            state = "unchecked" if order.status in _ASSIGNED else "checking"
            return kind.model_validate({"state": state, "summary": order.reason, "drone": drone, "order": order.id})
        return kind.model_validate({"summary": _nothing_known(row), **_found(row), "state": row.check_state})


def _requester(caller: Caller) -> Requester:
    return Requester(caller.user, caller.user_id)


def _found(row: Provider | Project) -> dict[str, Any]:
    """The report, without empty texts."""
    report = row.check_report or {}
    return {name: value for name, value in report.items() if value != "" and name != "ok"}


def _nothing_known(row: Provider | Project) -> str:
    command = f"fleet provider test {row.name}" if isinstance(row, Provider) else f"fleet project test {row.slug}"
    return f"never tried (next: {command})"
