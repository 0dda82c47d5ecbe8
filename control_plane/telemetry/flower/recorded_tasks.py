"""Runs as the database knows them, in Celery's words: what Flower is to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select

from control_plane.core.settings import FleetSettings
from control_plane.db.drones import Drone
from control_plane.db.engine import Database
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.drones.condition import worker_of
from shared.outcome import ExitStatus
from shared.states import ENDED, OrderStatus, RunStatus

PENDING, STARTED = "PENDING", "STARTED"
SUCCESS, FAILURE, RETRY, REVOKED = "SUCCESS", "FAILURE", "RETRY", "REVOKED"
FINAL = frozenset({SUCCESS, FAILURE, RETRY, REVOKED})
"""How a task can end. Each run is a task of its own, so that one that is followed by another ends with RETRY."""


@dataclass(frozen=True)
class RecordedTask:
    """One run. Times are seconds since 1970."""

    run_id: str
    order_id: str
    organization: str
    generation: int
    worker: str
    state: str
    exit_status: str
    sent_at: float
    started_at: float | None
    ended_at: float | None

    @property
    def ended(self) -> bool:
        return self.state in FINAL


def task_reader(settings: FleetSettings, limit: int) -> Callable[[datetime], list[RecordedTask]]:
    """A function that returns the newest tasks, at most `limit`, that have not ended or ended after a time."""
    database = Database(settings.database_url)

    def read(since: datetime) -> list[RecordedTask]:
        rows = (
            select(Dispatch, Order, Drone, Run, Organization.name)
            .join(Organization, Organization.id == Dispatch.organization_id)
            .join(Order, Order.id == Dispatch.order_id)
            .join(Drone, Drone.id == Dispatch.drone_id)
            .outerjoin(Run, Run.id == Dispatch.id)
            .where(
                Dispatch.published_at.is_not(None),
                or_(Dispatch.closed_at.is_(None), Dispatch.closed_at >= since),
            )
            .order_by(Dispatch.created_at.desc())
            .limit(limit)
        )
        with database.read() as db:
            return [_task(*row) for row in db.execute(rows)]

    return read


def _task(dispatch: Dispatch, order: Order, drone: Drone, run: Run | None, organization: str) -> RecordedTask:
    ended_at = (run.ended_at if run is not None else None) or dispatch.closed_at
    return RecordedTask(
        run_id=dispatch.id,
        order_id=order.id,
        organization=organization,
        generation=dispatch.generation,
        worker=worker_of(drone),
        state=state_of(dispatch, order, run),
        exit_status=(run.exit_status if run is not None else None) or "",
        sent_at=dispatch.created_at.timestamp(),
        started_at=run.started_at.timestamp() if run is not None else None,
        ended_at=ended_at.timestamp() if ended_at is not None else None,
    )


def state_of(dispatch: Dispatch, order: Order, run: Run | None) -> str:
    """Celery's state of a run.

    A run that failed while its order continues is a retry, and so is one that its drone gave back, until the order ends
    without another run. A run that never began, because its order was canceled or went to another drone, was revoked.
    """
    if dispatch.closed_at is None:
        return PENDING if run is None else STARTED
    if run is not None and run.status == RunStatus.SUCCESS:
        return SUCCESS
    never_began = run is None and dispatch.claimed_at is None
    if never_began or (run is not None and run.exit_status == ExitStatus.CANCELED):
        return REVOKED
    # The last run before a user resumed the order: it had failed then.
    if dispatch.generation in _ends_by_hand(order):
        return FAILURE
    if dispatch.generation == order.generation and order.status in ENDED:
        return REVOKED if order.status == OrderStatus.CANCELED else FAILURE
    return RETRY


def _ends_by_hand(order: Order) -> set[Any]:
    return {order.renewed_generation, order.fresh_generation} - {0}
