"""Ephemeral drones that are gone are removed, as no person does it: their rows, their Redis users and their keys."""

from __future__ import annotations

from sqlalchemy import select

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.audit_chain import AuditEntry, recording
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.drones.pool_members import GONE_AFTER, is_gone
from control_plane.operations.drones.managing import remove
from shared.terminal import logs

log = logs.get(__name__)


def remove_gone(core: Core) -> list[str]:
    """Remove the ephemeral drones that were offline for ten minutes; returns their names.

    One whose events are not all stored stays until they are, or until what is missing was written off as a gap: its
    orders would lose steps that still arrive.
    """
    now = core.clock.now()
    with core.database.read() as db:
        living = db.scalars(select(Drone).where(Drone.pool_id.is_not(None), Drone.removed_at.is_(None)))
        gone = [drone for drone in living if is_gone(drone, now)]
        names = {id_: name for id_, name in db.execute(select(Organization.id, Organization.name))} if gone else {}
    backlogs = core.broker.backlogs([drone.id for drone in gone]) if gone else {}
    stored = [drone for drone in gone if backlogs[drone.id].unstored == 0]

    def remove_one(drone: Drone) -> str:
        with recording(_entry(core, drone, names[drone.organization_id])):
            remove(core, drone.organization_id, drone.id)
        log.info("an ephemeral drone is gone and was removed", drone=drone.id, name=drone.name)
        return drone.name

    return each_alone("gone members", stored, remove_one)


def _entry(core: Core, drone: Drone, organization: str) -> AuditEntry:
    minutes = int(GONE_AFTER.total_seconds() // 60)
    return AuditEntry(
        at=core.clock.now(),
        actor_kind="control plane",
        actor="system",
        action="remove_drone",
        door="control plane",
        target=f"{drone.name} (ephemeral, offline for {minutes} minutes)",
        organization=organization,
        organization_ref=drone.organization_id,
    )
