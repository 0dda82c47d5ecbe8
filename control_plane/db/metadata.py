"""All rows as one: whoever makes, compares or empties every table imports this."""

from __future__ import annotations

from control_plane.db import automation, models, teams

METADATA = models.Row.metadata
MODULES = (models, teams, automation)
