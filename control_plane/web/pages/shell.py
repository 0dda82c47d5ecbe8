"""The frame of every page for a logged-in user."""

from __future__ import annotations

from typing import Any

from control_plane.core import Caller, Core
from control_plane.core.flower_address import FLOWER_PATH
from control_plane.operations.access.roles import may


def shell(core: Core, caller: Caller) -> dict[str, Any]:
    """The context of the frame: the caller, their rights, the time. Flower shows all organizations."""
    return {
        "caller": caller,
        "may_submit": may(caller, "operator"),
        "url": core.settings.url,
        "flower_url": _flower(core) if caller.everywhere and may(caller, "admin") else None,
        "now": core.clock.now(),
    }


def _flower(core: Core) -> str | None:
    """Flower behind the log-in of these pages, else the one that has a log-in of its own."""
    return FLOWER_PATH if core.settings.flower_upstream else core.settings.flower_url
