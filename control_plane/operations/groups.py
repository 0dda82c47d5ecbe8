"""What graphs and races have in common: submitted once, and made of orders."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import sha256

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.documents.base import Request
from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller, Core
from control_plane.core.lookups.groups import GroupKind
from control_plane.db.groups import OrderGroup
from control_plane.operations.orders.canceling import cancel_unfinished
from control_plane.orders.numbers import lock_numbers
from shared.errors import Conflict
from shared.names import new_id

KEY_LASTS = timedelta(days=7)


def submit_once(
    core: Core,
    caller: Caller,
    submitted: tuple[GroupKind, str, Request, str | None],
    write: Callable[[Db, OrderGroup], Sequence[str]],
) -> str:
    """Write a group and its orders in one transaction, or find the one that was created with this key before.

    `submitted`: the kind, the name, the request and the idempotency key. `write` creates the orders and returns their
    ids. Returns the group's id. Raises Conflict if the key was used for another request.
    """
    kind, name, request, key = submitted
    # Without defaults, so that a key outlives an upgrade that adds fields.
    fields = request.model_dump(mode="json", exclude_defaults=True)
    body_hash = sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def work(db: Db) -> tuple[str, Sequence[str]]:
        lock_numbers(db)
        if key is not None and (before := _submitted_before(db, core, caller, key)) is not None:
            if before.request_hash != body_hash:
                raise Conflict(
                    f"the idempotency key was already used for another request, which created {before.kind} "
                    f"{before.id}",
                    code="E-ORDER-IDEMPOTENCY",
                    next=f"use a new key for a new {kind}",
                )
            return before.id, ()
        group = OrderGroup(
            id=new_id(),
            organization_id=caller.organization_id,
            kind=kind,
            name=name,
            user=caller.user,
            user_id=caller.user_id,
            idempotency_key=key,
            request_hash=body_hash,
            created_at=core.clock.now(),
        )
        db.add(group)
        db.flush()
        return group.id, write(db, group)

    group_id, order_ids = core.database.transact(work)
    for each in order_ids:
        core.broker.changed(each)
    return group_id


def _submitted_before(db: Db, core: Core, caller: Caller, key: str) -> OrderGroup | None:
    """The group created with this key within the last 7 days; the key is removed from an older one."""
    group = db.scalar(
        select(OrderGroup).where(
            OrderGroup.organization_id == caller.organization_id, OrderGroup.idempotency_key == key
        )
    )
    if group is not None and core.clock.now() - group.created_at >= KEY_LASTS:
        group.idempotency_key = None
        db.flush()
        return None
    return group


def cancel_open(core: Core, caller: Caller, orders: Sequence[OrderSummary], reason: str) -> None:
    """Cancel the orders that have not ended, the last ones first: none starts because an earlier one is gone."""
    for order in reversed(orders):
        if order.ended_at is None:
            cancel_unfinished(core, caller, order.id, reason)


def cost_of(orders: Sequence[OrderSummary]) -> float | None:
    """The cost of all orders in USD; None if a price is unknown."""
    costs = [order.stats.cost_usd for order in orders]
    return sum(cost for cost in costs if cost is not None) if None not in costs else None
