"""All rows as one: whoever makes, compares or empties every table imports this."""

from __future__ import annotations

from control_plane.db import (
    access,
    automation,
    base,
    drones,
    installation,
    orders,
    projects,
    runs,
    sessions,
    teams,
    waits,
)

METADATA = base.Row.metadata
MODULES = (installation, access, drones, projects, sessions, orders, runs, waits, teams, automation)
