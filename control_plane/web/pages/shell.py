"""The frame of every page for a logged-in user."""

from __future__ import annotations

from typing import Any

from control_plane.core import Caller, Core
from control_plane.operations.access.roles import may


def shell(core: Core, caller: Caller) -> dict[str, Any]:
    """The context of the frame: the caller, their rights, the time. Flower shows all organizations."""
    return {
        "caller": caller,
        "may_submit": may(caller, "operator"),
        "url": core.settings.url,
        "flower_url": core.settings.flower_url if caller.everywhere and may(caller, "admin") else None,
        "now": core.clock.now(),
    }
