"""The only way to create an order: for a user's submission, an agent's turn, or a small service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session as Db

from control_plane.core import Core
from control_plane.core.lookups.modes import BUILT_IN, find_mode
from control_plane.core.origin import current_origin
from control_plane.db.modes import CustomMode
from control_plane.db.orders import Order, Turn
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession
from control_plane.db.teams import Agent
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.numbers import next_number
from control_plane.orders.run_settings import OwnLimits, effective_limits, thinking_of
from control_plane.orders.stacks import note_stacks
from control_plane.orders.status_changes import facts_columns
from shared.budgets import OnLimit
from shared.limits import EffectiveLimits
from shared.names import new_id
from shared.reasons import JustSubmitted, OrderFacts
from shared.states import OrderStatus, TurnStatus
from shared.work_order import Limits, ModeDefinition, Purpose, ThinkingLevel

AS_ASKED = ("keep_raw", "ticket")
"""Fields that request, order, next order of the session and the drone's work order have alike, under the same name."""
MAX_ATTEMPTS = 3
"""Default of an order's `max_attempts`."""


def as_asked(given: object) -> dict[str, Any]:
    """Those fields of a request or of an order."""
    return {name: getattr(given, name) for name in AS_ASKED}


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
    mode: str = "build"
    """Built in, or defined for the project."""
    thinking: ThinkingLevel | None = None
    """None: the closest other setting, see `run_settings`."""
    reviewer: Provider | None = None
    as_asked: Mapping[str, Any] = field(default_factory=dict)
    """AS_ASKED; those that are missing have the defaults of their columns."""
    verify: Sequence[str] | None = None
    """Commands that must pass at the end; None: the project's."""
    profile: str | None = None
    purpose: Purpose = "work"
    asked: Mapping[str, Any] | None = None
    model: str | None = None
    """None: the provider's own."""
    limits: Limits | None = None
    """The limits of a service; None: `own_limits` and those of session, agent, project and organization."""
    own_limits: OwnLimits = field(default_factory=OwnLimits)
    on_limit: OnLimit = "stop"
    plan_first: bool = False
    priority: int = 0
    approve: str | None = None
    """None: the session's approval mode."""
    allow: Sequence[str] = ()
    """In addition to the commands that the session allows."""
    max_attempts: int = MAX_ATTEMPTS
    labels: Mapping[str, str] = field(default_factory=dict)
    drone_id: str | None = None
    after: Sequence[str] = ()
    """Ids of the orders that must succeed before it."""
    commit: str | None = None
    """What it starts from; None: the tip of the project's branch, or the work that it builds on."""
    merge_only: bool = False
    """Its model is asked only about conflicts with the work of `after`, and about checks that fail then."""
    group_id: str | None = None
    group_key: str | None = None
    agent_id: str | None = None
    task_id: str | None = None
    idempotency_key: str | None = None
    request_hash: str | None = None


def create_order(db: Db, core: Core, draft: Draft) -> Order:
    """Write order and turn, and place the order; it waits with a reason if no drone takes it.

    The session may be new: it is added first. The number is taken under a lock that is held until the commit, so that
    the orders of a session are numbered in the order of their commits. Raises NotFound for an unknown mode.
    """
    order = _order(core, draft, next_number(db), _limits(db, draft))
    mode = find_mode(db, draft.project, draft.mode) if draft.purpose == "work" else None
    order.thinking = _thinking(db, draft, mode)
    order.mode_definition = _definition(mode)
    # Session, order, turn: the order that their foreign keys require.
    for row in (draft.session, order, _turn(order, draft.provider)):
        db.add(row)
        db.flush()
    note_stacks(db, core, order)
    place_and_dispatch(db, core, order)
    return order


def _limits(db: Db, draft: Draft) -> EffectiveLimits:
    if draft.limits is not None:
        return EffectiveLimits(draft.limits)
    return effective_limits(db, draft.own_limits, draft.session, _agent(db, draft), draft.project)


def _agent(db: Db, draft: Draft) -> Agent | None:
    return db.get_one(Agent, draft.agent_id) if draft.agent_id is not None else None


def _order(core: Core, draft: Draft, number: int, limits: EffectiveLimits) -> Order:
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
        reviewer_id=draft.reviewer.id if draft.reviewer is not None else None,
        verify=None if draft.verify is None else list(draft.verify),
        profile=draft.profile,
        mode=draft.mode,
        priority=draft.priority,
        approve=draft.approve or draft.session.approve or "yolo",
        allow=list(dict.fromkeys([*(draft.session.allow or ()), *draft.allow])),
        limits=limits.limits.model_dump(mode="json"),
        limit_sources=dict(limits.sources),
        on_limit=draft.on_limit,
        plan_first=draft.plan_first,
        max_attempts=draft.max_attempts,
        prompt=draft.prompt,
        purpose=draft.purpose,
        asked=dict(draft.asked) if draft.asked is not None else None,
        agent_id=draft.agent_id,
        task_id=draft.task_id,
        idempotency_key=draft.idempotency_key,
        request_hash=draft.request_hash,
        group_id=draft.group_id,
        group_key=draft.group_key,
        after=list(draft.after),
        wanted_commit=draft.commit,
        merge_only=draft.merge_only,
        wanted_drone_id=draft.drone_id,
        wanted_labels=dict(draft.labels),
        status=OrderStatus.QUEUED.value,
        **facts_columns(OrderFacts(waits=JustSubmitted())),
        generation=0,
        traceparent=current_origin().traceparent or None,
        created_at=core.clock.now(),
        late_refs=[],
        **draft.as_asked,
    )


def _definition(mode: CustomMode | None) -> dict[str, Any] | None:
    """What the order keeps of its mode; None for a built-in one."""
    if mode is None or mode.name in BUILT_IN:
        return None
    definition = ModeDefinition(name=mode.name, text=mode.text, tools=tuple(mode.tools))
    return {**definition.model_dump(mode="json"), "read_only": mode.read_only}


def _thinking(db: Db, draft: Draft, mode: CustomMode | None) -> str | None:
    """The level at this time. A service makes small calls, which do not need any."""
    if draft.purpose != "work":
        return None
    closer = draft.thinking or draft.session.thinking
    return closer or thinking_of(db, _agent(db, draft), mode, draft.project, draft.provider)


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
