"""Every drone that was not removed has its Redis user, even after the server lost it."""

from __future__ import annotations

from sqlalchemy import select

from control_plane.core import Core
from control_plane.db.drones import Drone
from shared.terminal import logs

log = logs.get(__name__)


def ensure_users(core: Core) -> None:
    """Recreate missing users and delete those of removed drones."""
    there = core.broker.users()
    with core.database.read() as db:
        living = select(Drone.id, Drone.broker_password_hash).where(Drone.removed_at.is_(None))
        wanted = {drone_id: password_hash for drone_id, password_hash in db.execute(living)}
    changed = core.broker.ensure_users(wanted, there)
    if changed:
        log.info("broker users of drones were corrected", drones=changed)
