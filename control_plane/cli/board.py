"""What `fleet top` shows: drones, and the orders that matter now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shared.states import OrderStatus

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient

Doc = dict[str, Any]
MOST_ENDED, MOST_UNFINISHED = 50, 200
"""Orders that are read of all, and of each status that is not an end."""
_MOVES = (
    OrderStatus.QUEUED,
    OrderStatus.ASSIGNED,
    OrderStatus.RUNNING,
    OrderStatus.AWAITING_APPROVAL,
    OrderStatus.CANCELING,
)
"""In the order in which an order moves."""
_PLACES: Mapping[str, int] = {
    OrderStatus.AWAITING_APPROVAL: 0,
    OrderStatus.RUNNING: 1,
    OrderStatus.CANCELING: 1,
    OrderStatus.ASSIGNED: 2,
    OrderStatus.QUEUED: 2,
}


@dataclass(frozen=True)
class Board:
    """What the screen shows: the answer of `fleet status`, the drones, and the orders that matter now."""

    status: Doc
    drones: list[Doc]
    orders: list[Doc]
    """Those that wait for users first, then those at work, those that have not begun, and the newest ended ones."""


def read_board(fleet: FleetClient, *, mine: bool) -> Board:
    """What there is now. Raises the server's refusals, and Unreachable."""
    from control_plane.contract.declarations import drones, orders, organizations

    wanted: list[Doc] = [{"status": each, "limit": MOST_UNFINISHED} for each in _MOVES]
    # An order that moved on in between is in a later list as well, which counts.
    listed = [
        fleet.call(orders.LIST, orders.OrderFilter(**each, mine=mine)) for each in (*wanted, {"limit": MOST_ENDED})
    ]
    found = {order["id"]: order for part in listed for order in part}
    return Board(
        status=fleet.call(organizations.STATUS),
        drones=fleet.call(drones.LIST, drones.DroneFilter(mine=mine)),
        orders=sorted(found.values(), key=_place),
    )


def _place(order: Doc) -> tuple[int, int, float]:
    """Those that have not begun stand as they will start, all others newest first."""
    place, submitted = (
        _PLACES.get(order["status"], len(_PLACES)),
        datetime.fromisoformat(order["created_at"]).timestamp(),
    )
    if place == _PLACES[OrderStatus.QUEUED]:
        return place, -order["priority"], submitted
    return place, 0, -submitted
