"""The fleet as its page shows it: each drone with its state in words, what it does, and what waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from control_plane.contract.declarations.drones import NETWORK_WORDS, DroneDocument
from control_plane.contract.declarations.pools import PoolDocument
from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller, Core
from control_plane.operations.drones import managing, pools
from control_plane.operations.drones.recent_work import RecentWork, recent_work
from control_plane.operations.orders import reading
from control_plane.web.presentation import ShownState
from shared.durations import roughly
from shared.sizes import gigabytes
from shared.states import DroneStatus, OrderStatus

AT_WORK = (OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL, OrderStatus.CANCELING)
MOST = 200
ON_LINE = frozenset({DroneStatus.ONLINE, DroneStatus.BUSY, DroneStatus.DRAINING})


@dataclass(frozen=True)
class DroneCard:
    """One drone."""

    drone: DroneDocument
    state: ShownState
    why: str
    """Why it is in that state, and what would change it; empty for one that works or waits for orders."""
    since: datetime | None
    """Since when."""
    running: Sequence[OrderSummary]
    queue: Sequence[OrderSummary]
    """In the order in which they start."""

    @property
    def network(self) -> str:
        """What its commands can reach, in words; '' if unknown."""
        return NETWORK_WORDS.get(self.drone.network, self.drone.network)

    @property
    def machine(self) -> str:
        """How busy its machine is, in steps, so that the page does not change with every heartbeat; '' if unknown."""
        use = self.drone.machine
        if use is None:
            return ""
        cpu, memory = (f"{round(percent, -1):.0f} %" for percent in (use.cpu_percent, use.memory_percent))
        return f"CPU {cpu}, memory {memory}, {gigabytes(use.disk_free_mb)} free"


@dataclass(frozen=True)
class FleetView:
    """All drones, the orders that no drone has, and the pools."""

    cards: Sequence[DroneCard]
    waiting: Sequence[OrderSummary]
    pools: Sequence[PoolDocument]

    @property
    def online(self) -> int:
        return sum(each.drone.status in ON_LINE for each in self.cards)

    @property
    def slots(self) -> int:
        return sum(each.drone.concurrency for each in self.cards if each.drone.status in ON_LINE)

    @property
    def busy(self) -> int:
        return sum(each.drone.running for each in self.cards if each.drone.status in ON_LINE)


def fleet_view(core: Core, caller: Caller) -> FleetView:
    """The fleet as the caller may see it."""
    running = [order for status in AT_WORK for order in _orders(core, caller, status)]
    queue = _in_order(_orders(core, caller, OrderStatus.ASSIGNED))
    cards = [_card(drone, running, queue) for drone in managing.list_drones(core, caller)]
    return FleetView(cards, _in_order(_orders(core, caller, OrderStatus.QUEUED)), pools.list_(core, caller))


def drone_card(core: Core, caller: Caller, name: str) -> DroneCard:
    """One drone. Raises NotFound."""
    drone = managing.show_drone(core, caller, name)
    running = [order for status in AT_WORK for order in _orders(core, caller, status)]
    return _card(drone, running, _in_order(_orders(core, caller, OrderStatus.ASSIGNED)))


@dataclass(frozen=True)
class Outlook:
    """What the past says about a drone, for its card; it is no part of the page's version, as it changes with time."""

    idle_since: datetime | None
    """None: it works, or it is unknown."""
    next_in: str
    """When its queue moves on: `6 min`; empty: at once, or unknown."""


def outlooks(core: Core, caller: Caller, cards: Sequence[DroneCard]) -> dict[str, Outlook]:
    """By the drone's id."""
    recent, now = recent_work(core, caller), core.clock.now()
    return {card.drone.id: _outlook(card, recent.get(card.drone.id), now) for card in cards}


def _outlook(card: DroneCard, recent: RecentWork | None, now: datetime) -> Outlook:
    if recent is None:
        return Outlook(None, "")
    # What it did for other organizations is unknown.
    idle = not card.drone.running and not card.drone.serves
    full = card.queue and card.drone.running >= card.drone.concurrency
    begun = [(now - order.started_at).total_seconds() for order in card.running if order.started_at]
    left = recent.usual_s - max(begun) if full and begun and recent.usual_s is not None else 0.0
    return Outlook(recent.ended_at if idle else None, roughly(left) if left > 0 else "")


def steady(view: FleetView) -> object:
    """The same without what changes with every heartbeat and is not shown, for the version of the page."""
    waiting = [(o.id, o.session_title, o.reason, o.priority) for o in view.waiting]
    return [_steady(each) for each in view.cards], waiting, view.pools


def _steady(card: DroneCard) -> object:
    drone = card.drone.model_copy(update={"last_seen_at": None, "doing": [], "machine": None})
    orders = [(o.id, o.session_title, o.status, o.reason, o.doing, o.priority) for o in (*card.running, *card.queue)]
    return drone, card.machine, card.state.words, card.why, card.since, orders


def _orders(core: Core, caller: Caller, status: str) -> list[OrderSummary]:
    return reading.list_orders(core, caller, limit=MOST, status=status, every=True)


def _in_order(orders: Sequence[OrderSummary]) -> list[OrderSummary]:
    """Urgent ones first, then in order of submission: the given ones are newest first."""
    return sorted(reversed(orders), key=lambda each: -each.priority)


def _card(drone: DroneDocument, running: Sequence[OrderSummary], queue: Sequence[OrderSummary]) -> DroneCard:
    state, why, since = state_of(drone)
    mine = [[each for each in orders if each.drone == drone.name] for orders in (running, queue)]
    return DroneCard(drone, state, why, since, *mine)


def state_of(drone: DroneDocument) -> tuple[ShownState, str, datetime | None]:
    """The drone's state in words, the reason, and since when."""
    if drone.condition in _CARE:
        words, why = _CARE[drone.condition]
        return words, why.format(drone.condition_detail), None
    if drone.condition == "unresponsive":
        return ShownState("needs care", "fail"), "Last heartbeat", drone.last_seen_at
    if drone.condition == "offline":
        stopped = drone.stopped_at is not None
        state = ShownState("asleep" if stopped else "offline", "off")
        return state, "Stopped" if stopped else "Last seen", drone.stopped_at or drone.last_seen_at
    if drone.condition == "busy":
        return ShownState("busy", "run"), "", None
    return (ShownState("working", "run") if drone.running else ShownState("online", "ok")), "", None


_CARE = {
    "disk_full": (ShownState("needs care", "fail"), "Its disk is full: {}. It takes no orders until there is space."),
    "over_quota": (ShownState("needs care", "fail"), "It filled its share of the broker's memory, and may not report."),
    "keys_revoked": (ShownState("keys revoked", "fail"), "It has to register again, with a new join token."),
    "never_started": (
        ShownState("not started", "off"),
        "It registered and was never started. Start it on its machine.",
    ),
    "withheld": (ShownState("closed by owner", "ask"), "Its owner's policy allows no orders now: {}"),
    "leaving": (ShownState("stopping", "ask"), "It stops when its current runs have ended."),
    "draining": (ShownState("draining", "ask"), "It finishes its current runs and takes no new orders."),
}
