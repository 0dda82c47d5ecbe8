"""A snapshot of the database: the basis for deciding that a fault was noticed and that it was recovered from."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from control_plane.core.background.leases import LEADER
from control_plane.db.drones import Drone
from control_plane.db.engine import Database
from control_plane.db.installation import Lease
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from shared.states import ENDED, OrderStatus, RunStatus


@dataclass(frozen=True)
class OrderFact:
    id: str
    status: str

    @property
    def ended(self) -> bool:
        return OrderStatus(self.status) in ENDED


@dataclass(frozen=True)
class RunFact:
    order_id: str
    drone_id: str
    generation: int
    running: bool
    closed: bool
    """Its dispatch is closed: the run ended, or the control plane took it back."""


@dataclass(frozen=True)
class DroneFact:
    boot_id: str | None
    seen: float
    """Arrival of the last beat, in seconds since the epoch; 0: never."""
    draining: bool
    stopping: bool


@dataclass(frozen=True)
class Facts:
    """One snapshot."""

    at: float
    """Seconds since the epoch."""
    orders: dict[str, OrderFact]
    runs: dict[str, RunFact]
    drones: dict[str, DroneFact]
    """By name."""
    leader: str = ""
    consuming: set[str] = field(default_factory=set)
    health: dict[str, Any] = field(default_factory=dict)

    def running_on(self, drone_id: str) -> dict[str, str]:
        """The drone's running runs, each with its order."""
        return {id_: run.order_id for id_, run in self.runs.items() if run.running and run.drone_id == drone_id}

    def running(self) -> dict[str, str]:
        return {id_: run.order_id for id_, run in self.runs.items() if run.running}

    def goes_on(self, run_id: str) -> bool:
        """True if the run is closed, and its order has ended or has a newer run."""
        run = self.runs[run_id]
        of_order = (each for each in self.runs.values() if each.order_id == run.order_id)
        newer = any(each.generation > run.generation for each in of_order)
        return run.closed and (self.orders[run.order_id].ended or newer)


def look(database: Database) -> Facts:
    """Read everything. Raises FleetError while the database does not answer."""
    columns = Run.id, Run.order_id, Run.drone_id, Run.generation, Run.status, Dispatch.closed_at
    with database.read() as db:
        orders = db.execute(select(Order.id, Order.status)).all()
        runs = db.execute(select(*columns).join(Dispatch, Dispatch.id == Run.id)).all()
        drones = db.scalars(select(Drone)).all()
        leader = db.scalar(select(Lease.holder).where(Lease.name == LEADER, Lease.expires_at > datetime.now(UTC)))
    return Facts(
        at=time.time(),
        orders={row.id: OrderFact(*row) for row in orders},
        runs={row.id: _run(row) for row in runs},
        drones={drone.name: _drone(drone) for drone in drones},
        leader=leader or "",
    )


def _run(row: Any) -> RunFact:
    is_closed = row.closed_at is not None
    is_running = row.status == RunStatus.RUNNING and not is_closed
    return RunFact(row.order_id, row.drone_id, row.generation, is_running, is_closed)


def _drone(drone: Drone) -> DroneFact:
    beat = drone.beat or {}
    return DroneFact(
        drone.boot_id,
        drone.last_seen_at.timestamp() if drone.last_seen_at else 0.0,
        bool(drone.draining or beat.get("draining")),
        bool(drone.stopped_at or beat.get("stopping")),
    )
