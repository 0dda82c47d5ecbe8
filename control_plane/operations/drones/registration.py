"""How a drone joins: a join token for a name, a Redis user and a bearer token, sealed to the drone's own key.

Joining twice with the same key and name gives the same drone, so that an answer that was lost can be asked for again.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.access import JoinToken
from control_plane.db.drones import Drone
from control_plane.validation.checks import check_labels, check_name, check_text, shown
from control_plane.validation.issued_secrets import DRONE_PREFIX, hashed, new_secret
from shared.envelope import Binding, seal
from shared.errors import Conflict, Invalid, Unauthenticated
from shared.names import new_id
from shared.registration import Credentials, RegistrationAnswer, RegistrationRequest

_NEW_TOKEN = "ask an admin for a new one: fleet token create"  # noqa: S105 - advice


@dataclass(frozen=True)
class AuthenticatedDrone:
    """A drone that authenticated with its bearer token."""

    drone_id: str
    organization_id: str
    name: str


@dataclass(frozen=True)
class _Secrets:
    """What the drone gets; the control plane keeps the hashes."""

    bearer: str
    broker_password: str


def register(core: Core, request: RegistrationRequest) -> RegistrationAnswer:
    """Take the drone in, or, with the key and the name of one that is here, give that one new credentials.

    The drone's Redis user exists when this returns. Raises Unauthenticated for a token that does not open the door,
    Conflict for a name that another key holds, Invalid for what the drone says of itself, Unreachable without a broker.
    """
    public_key = _checked(request)
    # Asked before the token is used up: a broker that is down must not cost anybody a token.
    core.broker.ping()
    secrets = _Secrets(new_secret(DRONE_PREFIX), new_secret())
    try:
        with core.database.write() as db:
            drone = _admit(db, core, request, secrets)
            keys = core.vault.box_keys(db)
    except IntegrityError as error:
        # Another drone took the name between the look and the insert.
        raise _name_taken(request.name) from error
    core.broker.ensure_user(drone.id, drone.broker_password_hash)
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
    """The drone that a bearer token belongs to. Raises Unauthenticated where there is none, or it was removed."""
    with core.database.read() as db:
        drone = db.scalar(select(Drone).where(Drone.token_hash == hashed(bearer)))
    if drone is None or drone.removed_at is not None:
        raise Unauthenticated(
            f"drone {drone.name} was removed" if drone else "this drone's token is not known here",
            code="E-DRONE-TOKEN",
            why="" if drone else "it was registered anew since, or with another control plane",
            next="drone register --url URL --token TOKEN",
        )
    return AuthenticatedDrone(drone.id, drone.organization_id, drone.name)


def unregister(core: Core, identity: AuthenticatedDrone) -> None:
    """The drone leaves: what it had in hand goes back to the queue, its credentials die."""
    from control_plane.operations.drones.managing import remove

    remove(core, identity.organization_id, identity.drone_id)


def _checked(request: RegistrationRequest) -> bytes:
    """The drone's public key, after a look at all the rest."""
    check_name("drone", request.name)
    check_labels(request.labels)
    check_text("the machine's id", request.machine_id, limit=128)
    for what, text, limit in (
        ("the sandbox", request.sandbox, 32),
        ("the version", request.version, 32),
        ("the host", request.host, 255),
    ):
        check_text(what, text, limit=limit, empty=True)
    try:
        key = base64.b64decode(request.public_key, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 32:
        raise Invalid("the public key is not 32 bytes in base64", code="E-DRONE-KEY", next="drone register")
    return key


def _admit(db: Session, core: Core, request: RegistrationRequest, secrets: _Secrets) -> Drone:
    now = core.clock.now()
    token = db.scalar(select(JoinToken).where(JoinToken.secret_hash == hashed(request.secret)))
    if token is None:
        raise Unauthenticated(
            "this join token is not one of ours",
            code="E-JOIN-UNKNOWN",
            why="it was mistyped or forged",
            next=_NEW_TOKEN,
        )
    known = _known(db, token.organization_id, request)
    if known is None:
        _use(db, token, now)
        known = Drone(id=new_id(), organization_id=token.organization_id, name=request.name, registered_at=now)
        known.public_key, known.machine_id = request.public_key, request.machine_id
        db.add(known)
    elif token.revoked_at is not None or token.expires_at <= now:
        _refuse(token, now)
    _write(known, request, token, secrets)
    db.flush()
    return known


def _known(db: Session, organization_id: str, request: RegistrationRequest) -> Drone | None:
    """The living drone with this key and name. Raises Conflict where only one of the two is the same."""
    alive = select(Drone).where(Drone.organization_id == organization_id, Drone.removed_at.is_(None))
    holder = db.scalar(alive.where(Drone.name == request.name))
    if holder is not None and holder.public_key != request.public_key:
        raise _name_taken(request.name)
    if holder is not None:
        return holder
    twin = db.scalar(alive.where(Drone.public_key == request.public_key).limit(1))
    if twin is not None:
        raise Conflict(
            f"this drone is registered already, as {twin.name}",
            code="E-DRONE-KEY-TAKEN",
            next=f"drone register --name {twin.name}    or first: drone unregister",
        )
    return None


def _use(db: Session, token: JoinToken, now: datetime) -> None:
    """Count one use. One statement looks and counts, so that two drones cannot both take the last use."""
    usable = JoinToken.used < JoinToken.uses, JoinToken.expires_at > now, JoinToken.revoked_at.is_(None)
    counted = update(JoinToken).where(JoinToken.id == token.id, *usable).values(used=JoinToken.used + 1)
    if db.scalar(counted.returning(JoinToken.id)) is None:
        db.refresh(token)
        _refuse(token, now)


def _refuse(token: JoinToken, now: datetime) -> NoReturn:
    if token.revoked_at is not None:
        raise Unauthenticated(f"join token {token.id} was revoked", code="E-JOIN-REVOKED", next=_NEW_TOKEN)
    if token.expires_at <= now:
        when = f"{token.expires_at:%Y-%m-%d %H:%M} UTC"
        raise Unauthenticated(f"join token {token.id} expired at {when}", code="E-JOIN-EXPIRED", next=_NEW_TOKEN)
    raise Unauthenticated(
        f"join token {token.id} is used up: it was good for {token.uses}", code="E-JOIN-USED", next=_NEW_TOKEN
    )


def _write(drone: Drone, request: RegistrationRequest, token: JoinToken, secrets: _Secrets) -> None:
    fixed = {**(drone.fixed_labels or {}), **token.labels}
    drone.fixed_labels = fixed
    drone.labels = {**request.labels, **fixed}
    # As with labels: what an earlier token gave stays.
    drone.serves = list(dict.fromkeys([*(drone.serves or ()), *token.serves]))
    drone.machine_id = request.machine_id
    drone.concurrency = request.concurrency
    drone.sandbox, drone.version, drone.host = request.sandbox, request.version, request.host
    drone.token_hash = hashed(secrets.bearer)
    drone.broker_password_hash = hashed(secrets.broker_password)


def _name_taken(name: str) -> Conflict:
    return Conflict(
        f"another drone is called {shown(name)} already",
        code="E-DRONE-NAME",
        why="its key is not yours",
        next=f"drone register --name OTHER-NAME    or, if it is gone: fleet drone remove {name}",
    )
