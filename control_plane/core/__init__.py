"""What every operation is handed: the parts of the control plane, made once at the entry, and who is asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shared.clock import Clock

if TYPE_CHECKING:
    from control_plane.broker.broker import Broker
    from control_plane.core.blob_store import BlobStore
    from control_plane.core.settings import Settings
    from control_plane.core.vault import Vault
    from control_plane.db.engine import Database

Role = Literal["admin", "operator", "viewer"]


@dataclass(frozen=True)
class Core:
    """The parts. Nothing here is global; a test makes its own."""

    settings: Settings
    database: Database
    """`.read()` and `.write()`: a transaction each; writes begin immediate on SQLite."""
    vault: Vault
    """Seals at rest and holds the control plane's box keys."""
    broker: Broker
    """Redis, the Celery queue and the drones' Redis users."""
    blobs: BlobStore
    clock: Clock


@dataclass(frozen=True)
class Caller:
    """Who asks, for which organization, and what they may do."""

    organization_id: str
    organization: str
    role: Role
    user: str
    everywhere: bool = False
    """May act in every organization, and make new ones."""
