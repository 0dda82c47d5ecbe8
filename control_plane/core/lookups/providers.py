"""Providers, found by their names or models."""

from __future__ import annotations

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import shown, unknown
from control_plane.db.orders import Order
from control_plane.db.projects import Provider
from control_plane.db.teams import Agent
from shared.errors import Invalid, NotFound


def find_provider(db: Session, organization_id: str, name: str) -> Provider:
    """The provider with this name. Raises NotFound with similar names."""
    row = db.scalar(living_providers(organization_id).where(Provider.name == name))
    if row is None:
        known = [each.name for each in db.scalars(living_providers(organization_id))]
        raise unknown("provider", name, known, "fleet provider ls")
    return row


def find_provider_or_model(db: Session, organization_id: str, named: str) -> Provider:
    """The provider with this name, else the one with this model. Raises NotFound, and Invalid if several have it."""
    living = living_providers(organization_id)
    found = (
        db.scalars(living.where(Provider.name == named)).all()
        or db.scalars(living.where(Provider.model == named).order_by(Provider.name)).all()
    )
    match found:
        case [only]:
            return only
        case []:
            names = ", ".join(f"{each.name} ({each.model})" for each in db.scalars(living.order_by(Provider.name)))
            raise NotFound(
                f"no provider is named {shown(named)} or has that model",
                code="E-PROVIDER-404",
                why=f"there are: {names or 'none'}"[:500],
                next="fleet provider ls",
            )
    raise Invalid(
        f"several providers have the model {shown(named)}: {', '.join(each.name for each in found)}",
        code="E-PROVIDER-MODEL",
        next=f"name one of them, such as {found[0].name}",
    )


def only_provider(db: Session, organization_id: str) -> Provider | None:
    """The organization's provider, if it has exactly one."""
    rows = db.scalars(living_providers(organization_id).limit(2)).all()
    return rows[0] if len(rows) == 1 else None


def model_now(db: Session, order: Order) -> str:
    """The model with which the order is sent: that of its agent, else its provider's, as they are now.

    Address, key and parameters are the provider's present ones, too: an earlier model may belong to another endpoint.
    """
    provider = db.get_one(Provider, order.provider_id)
    agent = db.get(Agent, order.agent_id) if order.agent_id is not None else None
    if agent is None or agent.model is None:
        return provider.model
    # Of an agent that has another provider by now, only an unchanged model fits the order's.
    fits = agent.provider_id in {None, provider.id} or agent.model == order.model
    return agent.model if fits else provider.model


def living_providers(organization_id: str) -> Select[Provider]:
    return select(Provider).where(Provider.organization_id == organization_id, Provider.removed_at.is_(None))
