"""Every drone that was not removed has its Redis user and its bindings, even after the server lost them."""

from __future__ import annotations

from sqlalchemy import select

from control_plane.broker.bindings import ensure_bindings
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.drones.key_rotation import user_of
from control_plane.drones.load import worker_of
from shared.terminal import logs

log = logs.get(__name__)


def ensure_users(core: Core) -> None:
    """Recreate missing users and bindings, and delete users of removed drones."""
    there = core.broker.users_by_server()
    with core.database.read() as db:
        drones = db.scalars(select(Drone).where(Drone.removed_at.is_(None))).all()
    wanted = {drone.id: user_of(drone) for drone in drones}
    if changed := core.broker.ensure_users(wanted, there):
        log.info("broker users of drones were corrected", drones=changed)
    if corrected := ensure_bindings(core.broker, {drone.id: worker_of(drone) for drone in drones}):
        log.info("shared bindings in the broker were corrected", keys=corrected)
