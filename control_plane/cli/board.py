"""What `fleet top` shows: drones, and the orders that matter now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.states import OrderStatus

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient

Doc = dict[str, Any]
MOST_ENDED = 50
_PLACES: Mapping[str, int] = {
    OrderStatus.AWAITING_APPROVAL: 0,
    OrderStatus.RUNNING: 1,
    OrderStatus.CANCELING: 1,
    OrderStatus.ASSIGNED: 2,
    OrderStatus.QUEUED: 3,
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

    wanted: tuple[Doc, ...] = ({"status": "awaiting_approval"}, {"status": "running"}, {"status": "queued"}, {})
    # An order that moved on in between is in the later list as well, which counts.
    listed = [fleet.call(orders.LIST, orders.OrderFilter(**each, mine=mine, limit=MOST_ENDED)) for each in wanted]
    found = {order["id"]: order for part in listed for order in part}
    return Board(
        status=fleet.call(organizations.STATUS),
        drones=fleet.call(drones.LIST, drones.DroneFilter(mine=mine)),
        orders=sorted(
            sorted(found.values(), key=lambda order: str(order["created_at"]), reverse=True),
            key=lambda order: _PLACES.get(order["status"], len(_PLACES)),
        ),
    )
