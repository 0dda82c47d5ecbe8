"""Documents of drones."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from control_plane.documents.base import Document


class DroneDocument(Document):
    id: str
    name: str
    organization: str | None
    """Whose it is; null where that is none of the caller's business: it only serves them."""
    serves: list[str]
    """The organizations that it works for beside its own, as far as the caller may know of them; `*`: all."""
    status: str
    labels: dict[str, str]
    concurrency: int
    running: int
    queued: int
    sandbox: str
    version: str
    host: str
    draining: bool
    registered_at: datetime
    last_seen_at: datetime | None
    note: str = ""
    """What people should know of it: that it runs on another machine than it was registered on."""
    doing: list[dict[str, Any]] = Field(default_factory=list)
    """What each run in hand does, from the last beat."""
