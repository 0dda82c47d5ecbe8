"""The figures beside the links of every page: what waits, what runs, who is online, what today cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from control_plane.core import Caller, Core
from control_plane.operations import costs, status
from control_plane.operations.inbox import listing as inbox
from control_plane.web.fleet_view import ON_LINE


@dataclass(frozen=True)
class Counts:
    """As of one moment."""

    inbox: int
    """What waits for a person."""
    orders: int
    """Unended."""
    tasks: int
    """Back with the user."""
    online: int
    drones: int
    busy: int
    """Active runs."""
    slots: int
    today_usd: float
    paused: bool
    """The organization starts no runs."""


def counts_of(core: Core, caller: Caller) -> Counts:
    """The figures for the caller's organization."""
    now = status.current_counts(core, caller)
    today = core.clock.now().astimezone(UTC).date().isoformat()
    spent = costs.list_(core, caller, since=today)
    waiting = inbox.count_inbox(core, caller)
    return Counts(
        inbox=waiting.total,
        orders=sum(now.orders.values()),
        tasks=waiting.kinds["task"],
        online=sum(now.drones.get(each, 0) for each in ON_LINE),
        drones=sum(now.drones.values()) - now.drones.get("removed", 0),
        busy=now.active_runs,
        slots=now.max_concurrency,
        today_usd=sum(each.spent_usd for each in spent),
        paused=now.paused,
    )
