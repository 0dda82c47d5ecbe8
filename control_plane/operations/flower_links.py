"""Where Flower is, for callers who may use it: it shows all organizations."""

from __future__ import annotations

from control_plane.core import Caller, Core
from control_plane.core.flower_address import FLOWER_PATH
from control_plane.operations.access.roles import may


def flower_path(core: Core, caller: Caller) -> str | None:
    """Flower behind the log-in of the pages, as their links name it, else the one that has a log-in of its own."""
    if not (caller.everywhere and may(caller, "admin")):
        return None
    return FLOWER_PATH if core.settings.flower_upstream else core.settings.flower_url


def flower_address(core: Core, caller: Caller) -> str | None:
    """The same as a complete URL, for programs."""
    path = flower_path(core, caller)
    return f"{core.settings.url}{path}" if path == FLOWER_PATH else path


def task_link(flower: str | None, run_id: str) -> str | None:
    """The page of a run in a Flower at this address."""
    return f"{flower.rstrip('/')}/task/{run_id}" if flower else None
