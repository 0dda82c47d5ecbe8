"""Every drone that was not removed has its Redis user and its bindings, even after the server lost them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select, update

from control_plane.broker.bindings import ensure_bindings
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.drones.key_rotation import user_of
from control_plane.drones.load import has_ability, worker_of
from shared.terminal import logs

log = logs.get(__name__)


def ensure_users(core: Core) -> None:
    """Recreate missing users and bindings, delete users of removed drones, and narrow the rights of updated drones."""
    there = core.broker.users_by_server()
    with core.database.read() as db:
        drones = db.scalars(select(Drone).where(Drone.removed_at.is_(None))).all()
    updated = [drone.id for drone in drones if drone.needs_broker_scripts and has_ability(drone, "no-scripts")]
    if updated:
        _note_updated(core, updated)
    wanted = {
        drone.id: replace(user_of(drone), needs_scripts=drone.needs_broker_scripts and drone.id not in updated)
        for drone in drones
    }
    if changed := core.broker.ensure_users(wanted, there):
        log.info("broker users of drones were corrected", drones=changed)
    if corrected := ensure_bindings(core.broker, {drone.id: worker_of(drone) for drone in drones}):
        log.info("shared bindings in the broker were corrected", keys=corrected)


def _note_updated(core: Core, drone_ids: Sequence[str]) -> None:
    """Never undone by a heartbeat: only a new registration gives a drone the rights of the previous version again."""
    with core.database.write() as db:
        db.execute(update(Drone).where(Drone.id.in_(drone_ids)).values(needs_broker_scripts=False))
    log.info("drones were updated and lose the broker rights of the previous version", drones=drone_ids)
