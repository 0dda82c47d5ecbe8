"""Permission for a run to push its branch: a request of its drone over HTTP, with the drone's own credential."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import select, update

from control_plane.core import AuthenticatedDrone, Core
from control_plane.core.audit_entries import note_drone
from control_plane.db.orders import Order
from control_plane.operations.runs.blobs import own_dispatch
from control_plane.orders.races import check_push
from shared.errors import Conflict
from shared.races import PushGrantRequest
from shared.states import IN_HAND, OrderStatus

GRANT_LASTS = timedelta(seconds=60)
_MAY_PUSH = (*IN_HAND, OrderStatus.CANCELING)
"""Includes `assigned`: the request may arrive before the drone's report that the run started is processed."""


def grant_push(
    core: Core, identity: AuthenticatedDrone, run_id: str, request: PushGrantRequest | None = None
) -> dict[str, Any]:
    """Grant permission to push the order's branch for 60 s: `{"granted", "expires_in", "known"}`.

    `known` is the commit that this fleet last pushed to the branch, None if it never did. Raises Conflict for a run
    that is not its order's current one: its work goes to a branch under its own name. Raises Precondition for an order
    of a race that has not won it.
    """
    with core.database.write() as db:
        dispatch = own_dispatch(db, identity, run_id)
        # One statement compares the generation and writes the grant; while a grant is open, the supervisor does not
        # record the run as lost, so two runs can never push the same branch.
        current = (
            Order.id == dispatch.order_id,
            Order.run_id == run_id,
            Order.generation == dispatch.generation,
            Order.status.in_(_MAY_PUSH),
        )
        now = core.clock.now()
        until = now + GRANT_LASTS
        before = db.scalar(select(Order.grant_until).where(Order.id == dispatch.order_id))
        order = db.scalar(update(Order).where(*current).values(grant_until=until).returning(Order))
        if order is None:
            raise Conflict(
                f"run {run_id} is not the current run of order {dispatch.order_id} and may not push its branch",
                code="E-PUSH-STALE",
                next=f"fleet show {dispatch.order_id}",
            )
        check_push(db, order, (request or PushGrantRequest()).verification)
        known = order.head_commit if order.pushed else None
        if before is None or before < now:
            # A drone may ask as often as it likes: what prolongs a grant is not recorded again.
            note_drone(db, core, identity, "grant_push", order.id)
    return {"granted": True, "expires_in": int(GRANT_LASTS.total_seconds()), "known": known}
