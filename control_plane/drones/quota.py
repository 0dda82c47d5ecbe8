"""What one drone may hold of the broker's memory."""

from __future__ import annotations

from control_plane.core import Core

CODE = "E-DRONE-QUOTA"
"""Explains to people what happened to a drone beyond it."""
_OF_ALL = 0.4
"""Of a small broker: twice the quota, from which on a stream is deleted, must fit into it."""


def quota_bytes(core: Core, limit: int) -> int:
    """The quota, for a broker that may use `limit` bytes in all (0 = unlimited)."""
    wanted = core.settings.drone_broker_mb << 20
    return min(wanted, int(limit * _OF_ALL)) if limit else wanted
