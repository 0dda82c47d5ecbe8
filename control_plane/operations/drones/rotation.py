"""Replacing a drone's keys: an admin asks for it, and the drone fetches credentials to a key that it makes."""

from __future__ import annotations

import base64
import secrets

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import drones as declared
from control_plane.contract.declarations.drones import DroneDocument
from control_plane.contract.validation.issued_secrets import DRONE_PREFIX, hashed, new_secret
from control_plane.core import AuthenticatedDrone, Caller, Core, EndedRun
from control_plane.core.audit_entries import note_drone
from control_plane.db.drones import Drone
from control_plane.drones.inbox import notify_drone, pending
from control_plane.drones.key_rotation import forget_next_keys, user_of
from control_plane.drones.reports import InvalidReport, open_report, sender_of
from control_plane.operations.drones.managing import lock_orders, own_drone, show_drone, take_back
from control_plane.operations.drones.registration import checked_key
from control_plane.operations.gateway import performs
from control_plane.orders.lost import announce
from shared.control import RotateKeys
from shared.envelope import Binding, seal
from shared.errors import Conflict, FleetFault, Forbidden
from shared.registration import Credentials, NewKey, NewKeyAnswer, NewKeyRequest
from shared.terminal import logs

log = logs.get(__name__)


@performs(declared.ROTATE_KEYS)
def rotate_keys(core: Core, caller: Caller, name: str) -> DroneDocument:
    """Ask the drone to replace its keys."""
    with core.database.write() as db:
        drone = own_drone(db, caller, name)
        drone.rotation_asked_at = drone.rotation_asked_at or core.clock.now()
        if not pending(db, drone.id, None, "rotate_keys"):
            notify_drone(db, core, drone.id, RotateKeys())
    core.broker.wake()
    return show_drone(core, caller, name)


@performs(declared.REVOKE_KEYS)
def revoke_keys(core: Core, caller: Caller, name: str) -> DroneDocument:
    """End the drone's keys at once. Its orders go to other drones; it has to register again, with another key."""

    def work(db: Session) -> tuple[str, list[str], list[EndedRun]]:
        drone = own_drone(db, caller, name)
        lock_orders(db, drone.id)
        db.refresh(drone, with_for_update=True)
        now = core.clock.now()
        drone.keys_revoked_at = drone.stopped_at = now
        drone.revoked_public_key = drone.public_key
        # Values that nobody has, in place of none: whatever compares them refuses the old ones, and needs no rule.
        drone.public_key = base64.b64encode(secrets.token_bytes(32)).decode()
        drone.token_hash, drone.broker_password_hash = hashed(new_secret(DRONE_PREFIX)), hashed(new_secret())
        forget_next_keys(drone)
        return drone.id, *take_back(db, core, drone, "keys_revoked")

    drone_id, order_ids, ended = core.database.transact(work)
    try:
        core.broker.remove_user(drone_id)
    except FleetFault as error:
        # The supervisor overwrites the user's password when the broker is available again.
        log.warning("keys revoked while the broker is unavailable", drone=drone_id, why=error.what)
    announce(core, order_ids, ended)
    return show_drone(core, caller, name)


def issue_next_keys(core: Core, identity: AuthenticatedDrone, request: NewKeyRequest) -> NewKeyAnswer:
    """Credentials for the drone's new key, valid beside the old ones until it uses them.

    A repeated request, after an answer that was lost, gets other ones. Raises Conflict if no admin asked for new keys,
    Forbidden if the request is not from the drone, Unreachable if the broker is unavailable.
    """
    core.broker.ping()
    bearer, password = new_secret(DRONE_PREFIX), new_secret()
    with core.database.write() as db:
        drone = db.scalar(select(Drone).where(Drone.id == identity.drone_id).with_for_update())
        if drone is None or drone.rotation_asked_at is None:
            raise Conflict(
                "this drone was not asked to replace its keys",
                code="E-KEYS-UNASKED",
                next=f"fleet keys rotate drone {identity.name}",
            )
        asked = _opened(db, core, drone, request.envelope)
        key = checked_key(asked.public_key)
        drone.next_public_key = asked.public_key
        drone.next_token_hash, drone.next_broker_password_hash = hashed(bearer), hashed(password)
        note_drone(db, core, identity, "issue_next_keys")
        user, sender = user_of(drone), core.vault.box_keys(db).current_private_key()
    core.broker.ensure_user(drone.id, *user.password_hashes, may_write=user.may_write)
    credentials = Credentials(broker_url=core.broker.drone_url(drone.id, password), api_token=bearer)
    binding = Binding(direction="credentials", drone=drone.id)
    body, now = credentials.model_dump_json(), core.clock.now()
    return NewKeyAnswer(credentials=seal(body, binding, sender=sender, recipient=key, issued_at=now))


def _opened(db: Session, core: Core, drone: Drone, envelope: str) -> NewKey:
    """The request, sealed with a key of the drone: its token alone does not suffice to replace its keys."""
    try:
        return open_report(NewKey, envelope, sender_of(db, drone), core.vault.box_keys(db).private_keys())
    except InvalidReport as error:
        raise Forbidden("this request is not from the drone", code="E-DRONE-KEY", why=str(error)) from error
