"""Drones that will not run an order: the policies of their owners refuse it, or it failed there and would again.

Both move the order to another drone, and are no failed attempts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from shared.outcome import ExitStatus

_CODE = "E-POLICY"
"""How the codes of all these refusals begin."""


def refused_by_policy(db: Session, run: Run) -> bool:
    """Whether the owner's policy refused the run, on a drone that says when its policy changes."""
    drone = db.get_one(Drone, run.drone_id)
    if run.exit_status != ExitStatus.REFUSED or (drone.beat or {}).get("policy_age_s") is None:
        return False
    errors = select(Step.body).where(Step.run_id == run.id, Step.kind == "error").order_by(Step.run_seq.desc())
    last = db.scalar(errors.limit(1))
    return last is not None and str(last.get("code", "")).startswith(_CODE)


def refusals_of(db: Session, order: Order) -> Mapping[str, str]:
    """The drones that refuse the order, by id, with the reason, since it was submitted or requested again.

    A refusal counts until the drone's policy changes.
    """
    since = max(order.fresh_generation, order.renewed_generation)
    refused = Run.order_id == order.id, Run.exit_status == ExitStatus.REFUSED.value, Run.generation > since
    runs = db.scalars(select(Run).where(*refused)).all()
    return {run.drone_id: run.reason for run in runs if refused_by_policy(db, run) and _still_counts(db, run)}


def unsuitable_drones(db: Session, order: Order) -> Mapping[str, str]:
    """The drones on which the order failed for lack of something that others may have, by id, with the reason, since
    it was submitted or requested again.
    """
    since = max(order.fresh_generation, order.renewed_generation)
    runs = select(Run).where(Run.order_id == order.id, Run.unsuitable.is_(True), Run.generation > since)
    return {run.drone_id: run.reason for run in db.scalars(runs)}


def _still_counts(db: Session, run: Run) -> bool:
    drone = db.get_one(Drone, run.drone_id)
    age, seen = (drone.beat or {}).get("policy_age_s"), drone.last_seen_at
    if age is None or seen is None or run.ended_at is None:
        return False
    return run.ended_at >= seen - timedelta(seconds=age)
