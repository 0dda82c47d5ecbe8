"""Entries of the audit log: who acts, from where, and on what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.core.origin import current_origin
from control_plane.db.audit_chain import AuditEntry, note
from control_plane.db.installation import Organization
from control_plane.db.orders import Order


def entry_of(core: Core, caller: Caller, action: str, target: str = "") -> AuditEntry:
    """What the caller is doing."""
    origin = current_origin()
    return AuditEntry(
        at=core.clock.now(),
        **_actor(caller),
        actor_user_id=caller.user_id or "",
        action=action,
        door=origin.door,
        address=origin.address,
        target=target,
        organization=caller.organization,
        organization_ref=caller.organization_id,
    )


def drone_entry(core: Core, drone: AuthenticatedDrone, action: str, target: str = "") -> AuditEntry:
    """What the drone is doing."""
    origin = current_origin()
    return AuditEntry(
        at=core.clock.now(),
        actor_kind="drone",
        actor=drone.name,
        actor_id=drone.drone_id,
        action=action,
        door=origin.door,
        address=origin.address,
        target=target,
        organization_ref=drone.organization_id,
    )


def note_drone(db: Session, core: Core, drone: AuthenticatedDrone, action: str, target: str = "") -> None:
    """Record with this transaction what the drone is doing."""
    name = db.get_one(Organization, drone.organization_id).name
    note(db, replace(drone_entry(core, drone, action, target), organization=name))


def note_order(db: Session, core: Core, order: Order, action: str) -> None:
    """Record with this transaction what happens to an order, unless it is part of what a caller does.

    The actor is the drone whose report is being processed, else the control plane.
    """
    reporting = current_origin().reporting
    owner = db.get_one(Organization, order.organization_id)
    if reporting is not None:
        entry = drone_entry(core, reporting, action, order.id)
    else:
        entry = AuditEntry(core.clock.now(), "control plane", "system", action, door="control plane", target=order.id)
    note(db, replace(entry, organization=owner.name, organization_ref=owner.id))


def _actor(caller: Caller) -> dict[str, Any]:
    if caller.login_session_id is not None:
        name = caller.user if caller.user_id is not None else f"login session {caller.login_session_id}"
        return {"actor_kind": "session", "actor": name, "actor_id": caller.token_id or caller.user_id or ""}
    if caller.token_id is not None:
        return {"actor_kind": "token", "actor": caller.user, "actor_id": caller.token_id}
    if caller.answer_link_id is not None:
        return {"actor_kind": "answer link", "actor": caller.user, "actor_id": caller.answer_link_id}
    return {"actor_kind": "control plane", "actor": caller.user}
