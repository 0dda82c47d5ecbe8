"""The size of one simulation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScaleSize:
    """How many drones and orders, and how they behave."""

    drones: int = 50
    orders: int = 300
    minutes: float = 0.0
    """How long the drones beat at least, counted from the first order."""
    own_users: bool = False
    """Each drone has a user and connections of its own; otherwise they share connections."""
    slots: int = 2
    work_s: float = 0.0
    """Seconds of one run."""
    leaving: float = 0.01
    """The part of the drones that leaves and returns, per minute."""
    collectors: int = 1
    submitters: int = 2
    """Connections over which orders are submitted."""
    sample_s: float = 5.0
    limit_s: float = 600.0
    """How long the orders may take; then those that have not ended count as lost."""
