"""Replacing a drone's keys: it asks for new ones, which are valid beside the old ones until it uses them.

The drone's first report under its next key proves that it has saved everything that comes with that key. See
docs/decisions/0013-rotation.md.
"""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control_plane.broker.users import DroneUser
from control_plane.core import Core
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.orders import Dispatch
from control_plane.drones.inbox import acted_on, forget
from control_plane.drones.reports import InvalidReport


def user_of(drone: Drone) -> DroneUser:
    """The drone's user in Redis, with each password that is valid now."""
    hashes = (drone.broker_password_hash, drone.next_broker_password_hash)
    known = tuple(each for each in hashes if each)
    return DroneUser(known, may_write=drone.over_quota_at is None)


def confirm(db: Session, core: Core, drone: Drone) -> list[str]:
    """End the old keys of a drone that uses its next ones; returns the messages that `end_old_password` deletes.

    Everything that was sealed to the old key and may not have been read is sealed again: the drone refuses it. An order
    that it did claim is not claimed a second time.

    Raises InvalidReport if the next keys are no longer those that were read: they were revoked or issued again since.
    """
    used = drone.next_public_key
    db.refresh(drone, with_for_update=True)
    if drone.next_public_key != used:
        raise InvalidReport("the key of this report is no longer one of the drone's")
    assert drone.next_public_key
    assert drone.next_token_hash
    assert drone.next_broker_password_hash
    drone.public_key = drone.next_public_key
    drone.token_hash = drone.next_token_hash
    drone.broker_password_hash = drone.next_broker_password_hash
    forget_next_keys(drone)
    drone.keys_made_at = core.clock.now()
    unclaimed = (Dispatch.drone_id == drone.id, Dispatch.closed_at.is_(None), Dispatch.claimed_at.is_(None))
    db.execute(update(Dispatch).where(*unclaimed).values(published_at=None))
    undone = select(InboxMessage).where(InboxMessage.drone_id == drone.id, InboxMessage.done_at.is_(None))
    asked = []
    for message in db.scalars(undone):
        message.sent_at = None
        if message.body.get("kind") == "rotate_keys":
            asked.append(message.id)
    return acted_on(db, core, drone.id, asked)


def forget_next_keys(drone: Drone) -> None:
    """Nothing is being replaced any more."""
    drone.next_public_key = drone.next_token_hash = drone.next_broker_password_hash = None
    drone.rotation_asked_at = None


def end_old_password(core: Core, drone_id: str, user: DroneUser, message_ids: list[str]) -> None:
    """After the commit of `confirm`: only the new password is valid, and connections with the old one are closed."""
    core.broker.renew_user(drone_id, *user.password_hashes, may_write=user.may_write)
    forget(core, drone_id, message_ids)
