"""Permits for the model calls of a run: a request of a drone over HTTP, with its own credential."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import AuthenticatedDrone, Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Provider
from control_plane.money.rates.groups import decide, group_of_provider
from control_plane.money.rates.permits import Asker
from control_plane.operations.runs.blobs import own_dispatch
from shared.rates import UNLIMITED, ModelPermit, PermitRequest


def permit_call(core: Core, identity: AuthenticatedDrone, run_id: str, request: PermitRequest) -> ModelPermit:
    """Let the run call its model now, or say how long it has to wait and why.

    A late run needs permits, too: its calls count at the endpoint. Raises NotFound for a run that is not the drone's,
    Unreachable without the broker: then the run continues at the last known rate.
    """
    with core.database.read() as db:
        dispatch = own_dispatch(db, identity, run_id)
        order = db.get_one(Order, dispatch.order_id)
        provider = _provider(db, order, request.provider)
        if provider is None:
            return UNLIMITED
        group = group_of_provider(core.vault, provider, dispatch.drone_id)
        asker = _asker(order, provider, dispatch)
    return decide(core.broker, group, asker, request)


def _provider(db: Session, order: Order, name: str) -> Provider | None:
    """The order's provider or a fallback with this name; None if it has been renamed or removed."""
    main = db.get_one(Provider, order.provider_id)
    if main.name == name:
        return main
    return db.scalar(
        select(Provider).where(
            Provider.organization_id == order.organization_id, Provider.name == name, Provider.removed_at.is_(None)
        )
    )


def _asker(order: Order, provider: Provider, dispatch: Dispatch) -> Asker:
    main = provider.id == order.provider_id
    waited_for = order.purpose == "work" and order.agent_id is None
    return Asker(
        run_id=dispatch.id,
        organization_id=order.organization_id,
        provider_id=provider.id,
        model=order.model if main else provider.model,
        rpm=provider.rpm,
        tpm=provider.tpm,
        # The order's priority decides; among equals, a turn of a chat goes before those of agents and services.
        rank=2 * order.priority + waited_for,
    )
