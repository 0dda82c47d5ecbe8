"""What every operation is handed: the parts of the control plane, made once at the entry, and who is asking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shared.clock import Clock

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from control_plane.broker.broker import Broker
    from control_plane.core.blob_store import BlobStore
    from control_plane.core.settings import FleetSettings
    from control_plane.core.vault import Vault
    from control_plane.db.engine import Database
    from control_plane.db.orders import Order

Role = Literal["admin", "operator", "viewer"]


@dataclass(frozen=True)
class Core:
    """The parts. Nothing here is global; a test makes its own."""

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
    """A run that has ended without a report of its drone."""

    run_id: str
    drone_id: str
    host: str
    how: Literal["failed", "revoked"]
    why: str


@dataclass(frozen=True)
class Subscribers:
    """What happens after an event of the order lifecycle; `control_plane.assemble` names all of it.

    The callables of the first two fields run inside the transaction of the event: their writes are committed with it,
    and what they raise rolls it back.
    """

    order_ended: Sequence[Callable[[Session, Core, Order], None]]
    """The order has just got its final status."""
    order_waits_for_person: Sequence[Callable[[Session, Core, Order, str], None]]
    """The order has just become `awaiting_approval`; the text is the name of the tool that waits."""
    runs_ended: Sequence[Callable[[Core, Sequence[EndedRun]], None]]
    """After the commit. A subscriber handles its own failures: nothing can be undone any more."""


@dataclass(frozen=True)
class Caller:
    """Who asks, for which organization, and what they may do."""

    organization_id: str
    organization: str
    role: Role
    user: str
    everywhere: bool = False
    """May act in every organization, and make new ones."""
