"""What taking entries in leaves to be done: acknowledging, telling, waking."""

from __future__ import annotations

from dataclasses import dataclass, field

from control_plane.core import EndedRun
from control_plane.orders.lost import Loss


@dataclass
class Taken:
    """What is to be done outside the database once the transaction is committed."""

    acknowledge: list[str] = field(default_factory=list)
    stepped: set[str] = field(default_factory=set)
    """Orders with new steps alone."""
    changed: set[str] = field(default_factory=set)
    """Orders whose row changed so that the supervisor may have work."""
    told: bool = False
    """A message for the drone was written."""
    losses: list[Loss] = field(default_factory=list)
    ended: list[EndedRun] = field(default_factory=list)
