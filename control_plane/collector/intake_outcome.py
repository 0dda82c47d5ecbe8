"""The work that remains after a batch of entries was stored: acknowledging, notifying, waking."""

from __future__ import annotations

from dataclasses import dataclass, field

from control_plane.broker.users import DroneUser
from control_plane.core import EndedRun
from control_plane.orders.lost import Loss


@dataclass
class IntakeOutcome:
    """The caller's work outside the database after the commit."""

    acknowledge: list[str] = field(default_factory=list)
    stepped: set[str] = field(default_factory=set)
    """Orders with new steps."""
    changed: set[str] = field(default_factory=set)
    """Orders whose row changed in a way that may give the supervisor work."""
    drone_notified: bool = False
    """The transaction wrote a message for the drone: wake the sender."""
    user_with_new_keys: DroneUser | None = None
    """The drone uses its next keys: this is its user in Redis now."""
    done_messages: list[str] = field(default_factory=list)
    """Messages that are done by that, without a heartbeat that says so."""
    losses: list[Loss] = field(default_factory=list)
    ended: list[EndedRun] = field(default_factory=list)
