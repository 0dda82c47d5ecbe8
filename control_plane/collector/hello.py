"""A drone has started: what it reports about itself is recorded, and the runs that it no longer has are lost."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.collector.intake_outcome import IntakeOutcome
from control_plane.contract.validation.checks import check_labels
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch
from control_plane.db.runs import Run
from control_plane.drones.reports import InvalidReport
from control_plane.orders.lost import Loss, lose
from shared.errors import Invalid
from shared.events import Hello
from shared.reasons import RunLoss


def note(core: Core, drone: Drone, said: Hello) -> None:
    """Record the drone's new start. Raises InvalidReport for labels that a registration would refuse."""
    try:
        check_labels(said.labels)
    except Invalid as error:
        raise InvalidReport(error.what) from error
    # Hellos wait in a stream, and beats do not: the last beat of a short boot may have been read before its hello.
    has_left = drone.stopped_at is not None and drone.boot_id == said.boot_id
    drone.boot_id = said.boot_id
    drone.version = said.version
    drone.sandbox = said.sandbox
    drone.concurrency = said.concurrency
    if said.labels:
        # The drone cannot set labels that the join token fixed.
        drone.labels = {**said.labels, **drone.fixed_labels}
    # The new boot's abilities are known from here on: orders may go out before its first beat.
    drone.beat = {**(drone.beat or {}), "machine_id": said.machine_id, "abilities": list(said.abilities)}
    if not has_left:
        drone.last_seen_at = core.clock.now()
        drone.stopped_at = None


def lose_missing_runs(  # noqa: PLR0913 - a hello, and where it counts
    db: Session, core: Core, drone: Drone, said: Hello, outcome: IntakeOutcome, *, patient: bool
) -> dict[str, int]:
    """Record the runs that did not survive the drone's new start as lost; may be repeated.

    Each start has its own boot id, and ends all runs of older boots before it says hello. A listed run therefore
    survives only if it is listed as ended; any other run is dead if another boot claimed it. While `patient`, a run of
    which the drone recorded more events than are stored is not given up yet, as the order's next run continues from the
    last stored step. These runs are returned, each with its last stored event. The drone sent everything it had before
    this hello, so the events still missing are those that Redis lost.
    """
    recorded = {each.run_id: each.last_seq for each in said.runs}
    behind: dict[str, int] = {}
    for loss in list(_losses(db, core, drone, said)):
        run = db.get(Run, loss.run_id)
        stored = run.last_seq if run is not None else 0
        if patient and stored < recorded.get(loss.run_id, 0):
            behind[loss.run_id] = stored
            continue
        # Its processes are dead, including any push: there is no need to wait for an open grant.
        ended = lose(db, core, loss, respect_grant=False)
        if ended is not None:
            outcome.losses.append(loss)
            outcome.ended.append(ended)
            outcome.changed.add(db.get_one(Dispatch, loss.run_id).order_id)
    return behind


def _losses(db: Session, core: Core, drone: Drone, said: Hello) -> Iterator[Loss]:
    # Regardless of `published_at`: the relay sets it after the message is sent, and the drone may have been faster.
    open_ones = db.scalars(select(Dispatch).where(Dispatch.drone_id == drone.id, Dispatch.closed_at.is_(None))).all()
    keys = core.broker.run_keys(drone.id, [each.id for each in open_ones])
    for dispatch in open_ones:
        if not _survived(dispatch, db.get(Run, dispatch.id), keys[dispatch.id], said):
            why = RunLoss(code="drone_restarted", drone=drone.name)
            yield Loss(dispatch.id, drone.id, dispatch.generation, why)


def _survived(dispatch: Dispatch, run: Run | None, key: str, said: Hello) -> bool:
    listed = next((each for each in said.runs if each.run_id == dispatch.id), None)
    if listed is not None:
        # It has a directory on the drone's disk, so it will not begin again, even if Redis no longer knows of a claim.
        return listed.ended
    claimed_by = run.boot_id if run is not None else _boot_of(key)
    if claimed_by is None:
        # Still queued, or its key is missing; it is offered again.
        return True
    return claimed_by == said.boot_id


def _boot_of(key: str) -> str | None:
    """The boot that claimed the run, from its key (`claimed:<generation>:<boot>`)."""
    return key.split(":", 2)[2] if key.startswith("claimed:") else None
