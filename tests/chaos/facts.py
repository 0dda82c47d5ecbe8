"""A snapshot of the database: the basis for deciding that a fault was noticed and that it was recovered from."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from control_plane.background.leases import LEADER
from control_plane.db.drones import Drone
from control_plane.db.engine import Database
from control_plane.db.installation import Lease
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from shared.states import ENDED, RunStatus

_ENDED = frozenset(str(each) for each in ENDED)


@dataclass(frozen=True)
class OrderFact:
    id: str
    status: str
    run_id: str | None
    generation: int
    ended_at: datetime | None
    receipt: dict[str, Any] | None

    @property
    def ended(self) -> bool:
        return self.status in _ENDED


@dataclass(frozen=True)
class RunFact:
    id: str
    order_id: str
    drone_id: str
    generation: int
    status: str
    closed: bool
    """Its dispatch is closed: the run ended, or the control plane took it back."""

    @property
    def running(self) -> bool:
        return self.status == RunStatus.RUNNING and not self.closed


@dataclass(frozen=True)
class DroneFact:
    id: str
    name: str
    boot_id: str | None
    seen: float
    """Arrival of the last beat, in seconds since the epoch; 0: never."""
    draining: bool
    stopping: bool
    warm: bool


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
        return {run.id: run.order_id for run in self.runs.values() if run.running and run.drone_id == drone_id}

    def running(self) -> dict[str, str]:
        return {run.id: run.order_id for run in self.runs.values() if run.running}

    def goes_on(self, run_id: str) -> bool:
        """True if the run is closed, and its order has ended or has a newer run."""
        run = self.runs[run_id]
        order = self.orders[run.order_id]
        newer = any(each.order_id == order.id and each.generation > run.generation for each in self.runs.values())
        return run.closed and (order.ended or newer)


def look(database: Database) -> Facts:
    """Read everything. Raises FleetError while the database does not answer."""
    with database.read() as db:
        orders = db.execute(
            select(Order.id, Order.status, Order.run_id, Order.generation, Order.ended_at, Order.receipt)
        ).all()
        runs = db.execute(
            select(Run.id, Run.order_id, Run.drone_id, Run.generation, Run.status, Dispatch.closed_at).join(
                Dispatch, Dispatch.id == Run.id
            )
        ).all()
        drones = db.execute(
            select(
                Drone.id, Drone.name, Drone.boot_id, Drone.last_seen_at, Drone.draining, Drone.stopped_at, Drone.beat
            )
        ).all()
        leader = db.scalar(select(Lease.holder).where(Lease.name == LEADER, Lease.expires_at > datetime.now(UTC)))
    return Facts(
        at=time.time(),
        orders={row.id: OrderFact(*row) for row in orders},
        runs={row.id: RunFact(*row[:5], closed=row.closed_at is not None) for row in runs},
        drones={row.name: _drone(row) for row in drones},
        leader=leader or "",
    )


def _drone(row: Any) -> DroneFact:
    beat = row.beat or {}
    return DroneFact(
        row.id,
        row.name,
        row.boot_id,
        row.last_seen_at.timestamp() if row.last_seen_at else 0.0,
        bool(row.draining or beat.get("draining")),
        bool(row.stopped_at or beat.get("stopping")),
        bool(beat.get("warm")),
    )
