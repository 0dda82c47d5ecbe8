"""The only way to create an order: for a user's submission, an agent's turn, or a small service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session as Db

from control_plane.core import Core
from control_plane.db.orders import Order, Turn
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.numbers import next_number
from control_plane.orders.status_changes import facts_columns
from shared.budgets import OnLimit
from shared.names import new_id
from shared.reasons import JustSubmitted, OrderFacts
from shared.states import OrderStatus, TurnStatus
from shared.work_order import Limits, Mode, Purpose

MAX_ATTEMPTS = 3
"""Default of an order's `max_attempts`."""


@dataclass(frozen=True)
class Draft:
    """The contents of a new order. All rows belong to one organization."""

    project: Project
    provider: Provider
    session: ChatSession
    """Its approval mode and allowed commands apply to the order, too."""
    prompt: str
    user: str = ""
    user_id: str | None = None
    mode: Mode = "build"
    purpose: Purpose = "work"
    asked: Mapping[str, Any] | None = None
    model: str | None = None
    """None: the provider's own."""
    limits: Limits = field(default_factory=Limits)
    on_limit: OnLimit = "stop"
    priority: int = 0
    approve: str | None = None
    """None: the session's approval mode."""
    allow: Sequence[str] = ()
    """In addition to the commands that the session allows."""
    max_attempts: int = MAX_ATTEMPTS
    labels: Mapping[str, str] = field(default_factory=dict)
    drone_id: str | None = None
    agent_id: str | None = None
    task_id: str | None = None
    idempotency_key: str | None = None
    request_hash: str | None = None


def create_order(db: Db, core: Core, draft: Draft) -> Order:
    """Write order and turn, and place the order; it waits with a reason if no drone takes it.

    The session may be new: it is added first. The number is taken under a lock that is held until the commit, so that
    the orders of a session are numbered in the order of their commits.
    """
    order = _order(core, draft, next_number(db))
    # Session, order, turn: the order that their foreign keys require.
    for row in (draft.session, order, _turn(order, draft.provider)):
        db.add(row)
        db.flush()
    place_and_dispatch(db, core, order)
    return order


def _order(core: Core, draft: Draft, number: int) -> Order:
    return Order(
        id=new_id(),
        number=number,
        organization_id=draft.project.organization_id,
        user=draft.user,
        user_id=draft.user_id,
        project_id=draft.project.id,
        session_id=draft.session.id,
        provider_id=draft.provider.id,
        model=draft.model or draft.provider.model,
        mode=draft.mode,
        priority=draft.priority,
        approve=draft.approve or draft.session.approve or "yolo",
        allow=list(dict.fromkeys([*(draft.session.allow or ()), *draft.allow])),
        limits=draft.limits.model_dump(mode="json"),
        on_limit=draft.on_limit,
        max_attempts=draft.max_attempts,
        prompt=draft.prompt,
        purpose=draft.purpose,
        asked=dict(draft.asked) if draft.asked is not None else None,
        agent_id=draft.agent_id,
        task_id=draft.task_id,
        idempotency_key=draft.idempotency_key,
        request_hash=draft.request_hash,
        wanted_drone_id=draft.drone_id,
        wanted_labels=dict(draft.labels),
        status=OrderStatus.QUEUED.value,
        **facts_columns(OrderFacts(waits=JustSubmitted()), OrderStatus.QUEUED, generation=0),
        generation=0,
        created_at=core.clock.now(),
        late_refs=[],
    )


def _turn(order: Order, provider: Provider) -> Turn:
    return Turn(
        id=new_id(),
        organization_id=order.organization_id,
        session_id=order.session_id,
        order_id=order.id,
        user=order.user,
        prompt=order.prompt,
        provider=provider.name,
        model=order.model,
        mode=order.mode,
        status=TurnStatus.PROCESSING.value,
        stats={},
        created_at=order.created_at,
    )
