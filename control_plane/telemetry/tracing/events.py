"""Notes the end of an order for its trace, in the transaction that ends it."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.traces import TraceExport
from shared.trace_context import TraceParent


def order_ended(db: Session, core: Core, order: Order) -> None:
    """Let the trace be exported, if traces are on and its sender, if it belongs to another trace, records that one.

    The small services of the control plane are not traced.
    """
    if core.settings.otlp_endpoint is None or order.purpose != "work":
        return
    parent = TraceParent.read(order.traceparent or "")
    if parent is not None and not parent.sampled:
        return
    ended_at = order.ended_at or core.clock.now()
    db.add(
        TraceExport(
            organization_id=order.organization_id,
            order_id=order.id,
            began_at=order.run_again_at or order.created_at,
            ended_at=ended_at,
            status=order.status,
            exit_status=order.exit_status,
            run_id=order.run_id,
            next_at=ended_at,
        )
    )
