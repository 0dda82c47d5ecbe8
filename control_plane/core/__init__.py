"""What every operation receives: the parts of the control plane, created once at the entry, and the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shared.clock import Clock

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from control_plane.broker.broker import Broker
    from control_plane.contract.declarations.operation import Role
    from control_plane.core.blob_store import BlobStore
    from control_plane.core.settings import FleetSettings
    from control_plane.core.vault import Vault
    from control_plane.db.engine import Database
    from control_plane.db.orders import Order
    from control_plane.db.waits import Wait


@dataclass(frozen=True)
class Core:
    """The parts. Nothing here is global; a test creates its own."""

    settings: FleetSettings
    database: Database
    """`.read()` and `.write()`: a transaction each; writes begin immediate on SQLite."""
    vault: Vault
    """Seals at rest and holds the control plane's box keys."""
    broker: Broker
    """Redis, the Celery queue and the drones' Redis users."""
    blobs: BlobStore
    clock: Clock
    subscribers: Subscribers


@dataclass(frozen=True)
class EndedRun:
    """A run that ended without a report from its drone."""

    run_id: str
    worker: str
    """Celery's name of its drone's worker."""
    how: Literal["failed", "retried", "revoked"]
    """`retried`: the order continues in another run."""
    why: str


@dataclass(frozen=True)
class Subscribers:
    """What happens after an event in the order lifecycle; `control_plane.server.assemble` lists all of it.

    The callables of the first three fields run inside the transaction of the event: their writes are committed with it,
    and an exception rolls it back.
    """

    order_ended: Sequence[Callable[[Session, Core, Order], None]]
    """The order just reached its final status."""
    order_waits_for_person: Sequence[Callable[[Session, Core, Order, str], None]]
    """The order just became `awaiting_approval`; the text is the name of the waiting tool."""
    wait_opened: Sequence[Callable[[Session, Core, Order, Wait], None]]
    """A run asked a person something; also if its order waited for another answer before."""
    runs_ended: Sequence[Callable[[Core, Sequence[EndedRun]], None]]
    """After the commit. A subscriber handles its own failures: nothing can be rolled back any more."""


@dataclass(frozen=True)
class Caller:
    """The caller's identity, organization and rights."""

    organization_id: str
    organization: str
    role: Role
    user: str
    """The name of the person, else of the token."""
    everywhere: bool = False
    """May act in every organization, and create new ones."""
    token_id: str | None = None
    """The API token behind the call, directly or through a browser session; None for the control plane itself."""
    user_id: str | None = None
    """The person; None for a token that belongs to no user."""
    login_session_id: str | None = None
    """The browser session that the call came through, if any."""
    answer_link_id: str | None = None
    """The one-use answer link that the call came through, if any."""


@dataclass(frozen=True)
class AuthenticatedDrone:
    """A drone that authenticated with its bearer token."""

    drone_id: str
    organization_id: str
    name: str
