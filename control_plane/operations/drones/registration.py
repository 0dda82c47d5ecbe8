"""Drone registration: a join token is exchanged for a name, a Redis user and a bearer token, sealed to the drone's key.

Registering again with the same key and name returns the same drone, so that a drone can retry after a lost answer.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from sqlalchemy import or_, select, true, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import check_labels, check_name, check_text, shown
from control_plane.contract.validation.issued_secrets import DRONE_PREFIX, hashed, new_secret
from control_plane.core import AuthenticatedDrone, Core
from control_plane.core.audit_entries import drone_entry, note_drone
from control_plane.db.access import JoinToken
from control_plane.db.audit_chain import recording
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.users import User
from control_plane.drones.key_rotation import forget_next_keys
from control_plane.operations.drones.joining_pools import made_name, require_kind, require_room
from shared.envelope import Binding, seal
from shared.errors import Conflict, Invalid, Precondition, Unauthenticated
from shared.events import FIRST_RELEASE
from shared.names import new_id
from shared.registration import Credentials, RegistrationAnswer, RegistrationRequest

_NEW_TOKEN = "ask an admin for a new one: fleet token add"  # noqa: S105 - advice


@dataclass(frozen=True)
class _Secrets:
    """The secrets issued to the drone; the control plane keeps only their hashes."""

    bearer: str
    broker_password: str


def register(core: Core, request: RegistrationRequest) -> RegistrationAnswer:
    """Register the drone, or issue new credentials to the registered drone with this key and name.

    The drone's Redis user exists when this returns. Raises Unauthenticated for an invalid join token, Conflict for a
    name that is taken by another key, Invalid for an invalid value, Precondition for a version that is too old,
    Unreachable if the broker is unavailable.
    """
    public_key = _checked(request)
    # Checked before the token is used: a broker without access or rights must not use up a token.
    core.broker.ping()
    core.broker.users()
    secrets = _Secrets(new_secret(DRONE_PREFIX), new_secret())
    try:
        with core.database.write() as db:
            drone = _admit(db, core, request, secrets)
            keys = core.vault.box_keys(db)
    except IntegrityError as error:
        # Another drone took the name between the check and the insert.
        raise _name_taken(request.name) from error
    # A drone beyond its quota does not regain its rights by registering again.
    core.broker.ensure_user(drone.id, drone.broker_password_hash, may_write=drone.over_quota_at is None)
    credentials = Credentials(
        broker_url=core.broker.drone_url(drone.id, secrets.broker_password), api_token=secrets.bearer
    )
    return RegistrationAnswer(
        drone_id=drone.id,
        name=drone.name,
        public_key=base64.b64encode(keys.current_public_key()).decode(),
        credentials=seal(
            credentials.model_dump_json(),
            Binding(direction="credentials", drone=drone.id),
            sender=keys.current_private_key(),
            recipient=public_key,
            issued_at=core.clock.now(),
        ),
        labels=drone.labels,
    )


def authenticate_drone(core: Core, bearer: str) -> AuthenticatedDrone:
    """The drone that a bearer token belongs to. Raises Unauthenticated if it is unknown or was removed."""
    digest = hashed(bearer)
    with core.database.read() as db:
        drone = db.scalar(select(Drone).where(or_(Drone.token_hash == digest, Drone.next_token_hash == digest)))
    if drone is None or drone.removed_at is not None:
        raise Unauthenticated(
            f"drone {drone.name} was removed" if drone else "this drone's token is unknown",
            code="E-DRONE-TOKEN",
            why="" if drone else "the drone was registered again since, or with another control plane",
            next="drone register --url URL --token TOKEN",
        )
    return AuthenticatedDrone(drone.id, drone.organization_id, drone.name)


def unregister(core: Core, identity: AuthenticatedDrone) -> None:
    """Unregister the drone: its orders are requeued, its credentials revoked."""
    from control_plane.operations.drones.managing import remove

    with recording(drone_entry(core, identity, "unregister_drone", identity.name)):
        remove(core, identity.organization_id, identity.drone_id)


def _checked(request: RegistrationRequest) -> bytes:
    """Validate the request and return the drone's public key."""
    if FIRST_RELEASE not in request.abilities:
        raise Precondition(
            f"the version of drone {shown(request.name)} is too old to register",
            code="E-DRONE-VERSION",
            why="it is from before the first release",
            next="update the drone, then: drone register --url URL --token TOKEN",
        )
    if request.name or not request.ephemeral:
        check_name("drone", request.name)
    check_labels(request.labels)
    check_text("the machine id", request.machine_id, limit=128)
    for what, text, limit in (
        ("the sandbox", request.sandbox, 32),
        ("the version", request.version, 32),
        ("the host", request.host, 255),
    ):
        check_text(what, text, limit=limit, empty=True)
    return checked_key(request.public_key)


def checked_key(text: str) -> bytes:
    """The public key. Raises Invalid."""
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 32:
        raise Invalid("the public key must be 32 bytes in base64", code="E-DRONE-KEY", next="drone register")
    return key


def _admit(db: Session, core: Core, request: RegistrationRequest, secrets: _Secrets) -> Drone:
    now = core.clock.now()
    token = db.scalar(select(JoinToken).where(JoinToken.secret_hash == hashed(request.secret)))
    if token is None:
        raise Unauthenticated(
            "this join token is unknown",
            code="E-JOIN-UNKNOWN",
            why="it was mistyped or forged",
            next=_NEW_TOKEN,
        )
    _require_owner(db, token)
    require_kind(db, token, request)
    known = _known(db, token.organization_id, request)
    if known is None:
        _use(db, token, now)
        name = request.name or made_name(db, token)
        known = Drone(id=new_id(), organization_id=token.organization_id, name=name, registered_at=now)
        known.public_key, known.machine_id = request.public_key, request.machine_id
        db.add(known)
    elif known.keys_revoked_at is not None:
        _use(db, token, now)
        _give_keys(db, known, request.public_key, now)
    elif token.revoked_at is not None or token.expires_at <= now:
        _refuse(token, now)
    _write(known, request, token, secrets)
    db.flush()
    identity = AuthenticatedDrone(known.id, known.organization_id, known.name)
    note_drone(db, core, identity, "register_drone", f"join token {token.id}")
    return known


def _require_owner(db: Session, token: JoinToken) -> None:
    """Raise Unauthenticated while the user who owns the token is disabled. A removed user's tokens are revoked."""
    owner = db.get(User, token.user_id) if token.user_id is not None else None
    if owner is not None and owner.disabled_at is not None:
        raise Unauthenticated(
            f"the owner of join token {token.id} is disabled", code="E-USER-DISABLED", next=_NEW_TOKEN
        )


def _give_keys(db: Session, drone: Drone, public_key: str, now: datetime) -> None:
    """Give a drone whose keys were revoked another one; what it was told under the old key is sealed again."""
    drone.public_key, drone.keys_made_at, drone.keys_revoked_at = public_key, now, None
    undone = InboxMessage.drone_id == drone.id, InboxMessage.done_at.is_(None)
    db.execute(update(InboxMessage).where(*undone).values(sent_at=None))


def _known(db: Session, organization_id: str, request: RegistrationRequest) -> Drone | None:
    """The living drone with this key and name, or with this name and without keys.

    Raises Conflict if only one of the two matches, or if the key was revoked.
    """
    alive = select(Drone).where(Drone.organization_id == organization_id, Drone.removed_at.is_(None))
    # A revocation that has begun ends first; from then on, none begins until the commit.
    alive = alive.with_for_update(key_share=True)
    holder = db.scalar(alive.where(Drone.name == request.name))
    twin = db.scalar(alive.where(Drone.public_key == request.public_key).limit(1))
    if db.scalar(select(Drone.id).where(Drone.revoked_public_key == request.public_key).limit(1)) is not None:
        raise Conflict(
            "this drone's key was revoked",
            code="E-DRONE-KEY-REVOKED",
            next="drone register, which creates another key",
        )
    if holder is not None and holder.keys_revoked_at is not None:
        return holder
    if holder is not None and holder.public_key != request.public_key:
        raise _name_taken(request.name)
    if holder is not None:
        return holder
    if twin is not None and not request.name:
        return twin
    if twin is not None:
        raise Conflict(
            f"this drone is already registered as {twin.name}",
            code="E-DRONE-KEY-TAKEN",
            next=f"drone register --name {twin.name}    or first: drone unregister",
        )
    return None


def _use(db: Session, token: JoinToken, now: datetime) -> None:
    """Count one use. A single statement checks and counts, so that two drones cannot both take the last use.

    A pool does not count uses, but the present drones.
    """
    left = true() if token.pool_id is not None else JoinToken.used < JoinToken.uses
    usable = left, JoinToken.expires_at > now, JoinToken.revoked_at.is_(None)
    counted = update(JoinToken).where(JoinToken.id == token.id, *usable).values(used=JoinToken.used + 1)
    if db.scalar(counted.returning(JoinToken.id)) is None:
        db.refresh(token)
        _refuse(token, now)
    require_room(db, token, now)


def _refuse(token: JoinToken, now: datetime) -> NoReturn:
    if token.revoked_at is not None:
        raise Unauthenticated(f"join token {token.id} was revoked", code="E-JOIN-REVOKED", next=_NEW_TOKEN)
    if token.expires_at <= now:
        when = f"{token.expires_at:%Y-%m-%d %H:%M} UTC"
        raise Unauthenticated(f"join token {token.id} expired at {when}", code="E-JOIN-EXPIRED", next=_NEW_TOKEN)
    raise Unauthenticated(
        f"join token {token.id} is used up: its limit was {token.uses} use{'' if token.uses == 1 else 's'}",
        code="E-JOIN-USED",
        next=_NEW_TOKEN,
    )


def _write(drone: Drone, request: RegistrationRequest, token: JoinToken, secrets: _Secrets) -> None:
    fixed = {**(drone.fixed_labels or {}), **token.labels}
    drone.fixed_labels = fixed
    drone.labels = {**request.labels, **fixed}
    # As with labels, values from an earlier token are kept.
    drone.serves = list(dict.fromkeys([*(drone.serves or ()), *token.serves]))
    if drone.join_token_id != token.id:
        drone.join_token_id, drone.user_id = token.id, token.user_id or drone.user_id
    drone.pool_id = token.pool_id
    drone.machine_id = request.machine_id
    drone.concurrency = request.concurrency
    drone.sandbox, drone.version, drone.host = request.sandbox, request.version, request.host
    drone.token_hash = hashed(secrets.bearer)
    drone.broker_password_hash = hashed(secrets.broker_password)
    forget_next_keys(drone)


def _name_taken(name: str) -> Conflict:
    return Conflict(
        f"another drone is already named {shown(name)}",
        code="E-DRONE-NAME",
        why="its key is different",
        next=f"drone register --name OTHER-NAME    or, if it no longer exists: fleet drone rm {name}",
    )
