"""All rows together: import this to create, compare or empty every table."""

from __future__ import annotations

from control_plane.db import (
    access,
    audit,
    automation,
    base,
    drones,
    installation,
    orders,
    projects,
    runs,
    sessions,
    spending,
    teams,
    users,
    waits,
)

METADATA = base.Row.metadata
MODULES = (
    installation,
    users,
    access,
    drones,
    projects,
    sessions,
    orders,
    runs,
    waits,
    spending,
    teams,
    automation,
    audit,
)
