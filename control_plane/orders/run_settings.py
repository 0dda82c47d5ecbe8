"""Settings of an order's runs, resolved when it is created: the value set closest to the order counts (O-020, O-111).

Order or task, session, agent, project, organization. The thinking level has two more: after the agent the mode, at
last the model. A later change of one of
these affects later orders only: a retry and a resumed run keep the values of their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session as Db

from control_plane.db.installation import Organization
from control_plane.db.modes import CustomMode
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession
from control_plane.db.teams import Agent
from shared.limits import EffectiveLimits, LimitLevel, effective


@dataclass(frozen=True)
class OwnLimits:
    """What an order itself, or its task, says."""

    values: Mapping[str, Any] = field(default_factory=dict)
    level: LimitLevel = "order"


def effective_limits(
    db: Db, own: OwnLimits, session: ChatSession, agent: Agent | None, project: Project
) -> EffectiveLimits:
    """The limits of a new order, and where each one comes from."""
    organization = db.get_one(Organization, project.organization_id)
    return effective(
        [
            (own.level, own.values),
            ("session", session.limits or {}),
            ("agent", limits_of_agent(agent) if agent is not None else {}),
            ("project", project.limits),
            ("organization", organization.limits),
        ]
    )


def thinking_of(
    db: Db, agent: Agent | None, mode: CustomMode | None, project: Project, provider: Provider
) -> str | None:
    """The thinking level where neither order nor session set one; None: the model's default (O-111)."""
    of_model = None if provider.thinking == "auto" else provider.thinking
    levels = (agent, mode, project, db.get_one(Organization, project.organization_id))
    return next((each.thinking for each in levels if each is not None and each.thinking), of_model)


def limits_again(order: Order) -> OwnLimits:
    """What the order itself says, for another order with the same settings."""
    return OwnLimits({name: value for name, value in order.limits.items() if order.limit_sources.get(name) == "order"})


def set_limits(order: Order, values: Mapping[str, Any]) -> None:
    """Change limits of an existing order, for its next run."""
    order.limits = {**order.limits, **values}
    order.limit_sources = {**order.limit_sources, **dict.fromkeys(values, "order")}


def limits_of_agent(agent: Agent) -> dict[str, Any]:
    """The limits that an agent sets. It always has a number of iterations (S-011)."""
    cost = {} if agent.cost_limit is None else {"cost_limit": agent.cost_limit}
    return {**agent.limits, "max_iterations": agent.max_iterations, **cost}
