"""A drone's keys are replaced: both sets are valid until its first report under the new key, then only the new one."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from control_plane.collector.held_events import Gaps
from control_plane.collector.intake import Intake
from control_plane.collector.stream_entries import DroneStream
from control_plane.contract.validation.issued_secrets import hashed
from control_plane.core import AuthenticatedDrone
from control_plane.db.drones import Drone, InboxMessage, RawEvent
from control_plane.operations.drones import registration, rotation
from control_plane.operations.drones.managing import drain, show_drone
from shared import envelope, names
from shared.envelope import Binding, new_private_key, public_key
from shared.errors import Conflict, Forbidden, Unauthenticated
from shared.events import UserStep
from shared.registration import Credentials, NewKey, NewKeyRequest
from tests.support import wait_until
from tests.support.database import is_waiting
from tests.support.planes import QUICK, Plane
from tests.support.stand_in import DroneStandIn, join

PROMPT = UserStep(text="do it", source="prompt")


def identity(plane: Plane, drone: DroneStandIn) -> AuthenticatedDrone:
    return AuthenticatedDrone(drone.id, plane.admin.organization_id, drone.name)


def new_keys(plane: Plane, drone: DroneStandIn, *, sealed_by: bytes | None = None) -> tuple[DroneStandIn, Credentials]:
    """What the drone does when it is asked: the same drone with its next keys, and its credentials."""
    key = new_private_key()
    asked = NewKey(drone_id=drone.id, public_key=base64.b64encode(public_key(key)).decode())
    sealer = replace(drone, private_key=sealed_by or drone.private_key)
    request = NewKeyRequest(envelope=sealer.seal(asked.model_dump_json(), Binding(direction="key", drone=drone.id)))
    answer = rotation.issue_next_keys(plane.core, identity(plane, drone), request)
    opened = envelope.open_envelope(
        answer.credentials,
        recipients={envelope.key_id(public_key(key)): key},
        sender=drone.control_key,
        expect=Binding(direction="credentials", drone=drone.id),
    )
    credentials = Credentials.model_validate_json(opened.body)
    # As a drone connects: its connections are closed once, together with those that used the old password.
    connected = redis.Redis.from_url(credentials.broker_url, decode_responses=True, retry=Retry(NoBackoff(), 1))
    return replace(drone, private_key=key, redis=connected, boot=names.new_id()), credentials


def row(plane: Plane, drone: DroneStandIn) -> Drone:
    return next(iter(plane.rows(Drone, Drone.id == drone.id)))


def password_of(drone: DroneStandIn) -> str:
    return str(drone.redis.connection_pool.connection_kwargs["password"])


def logs_in(plane: Plane, drone_id: str, password: str) -> bool:
    """Whether the broker accepts this password."""
    try:
        with redis.Redis.from_url(plane.core.broker.drone_url(drone_id, password)) as client:
            return bool(client.ping())
    except redis.AuthenticationError:
        return False
    except redis.ConnectionError:
        # The old password's connections were just being closed, and this one with them.
        return logs_in(plane, drone_id, password)


def rotate(plane: Plane, drone: DroneStandIn) -> tuple[DroneStandIn, Credentials]:
    rotation.rotate_keys(plane.core, plane.admin, drone.name)
    return new_keys(plane, drone)


def authenticated(plane: Plane, token: str) -> str:
    return registration.authenticate_drone(plane.core, token).drone_id


def done(plane: Plane, drone: DroneStandIn) -> None:
    """Wait until the replacement is over."""
    plane.until(lambda: row(plane, drone).rotation_asked_at is None)


def test_both_sets_of_keys_are_valid_until_the_drone_uses_the_new_one_and_then_the_old_ones_are_refused(
    plane: Plane, oka: DroneStandIn
) -> None:
    plane.collector()
    token = "fd_" + "0" * 32
    plane.edit(Drone, oka.id, token_hash=hashed(token))
    watching = oka.redis.pubsub()
    watching.subscribe(names.control_channel(oka.id))
    assert watching.get_message(timeout=5) is not None
    lost, _ = rotate(plane, oka)
    # The answer was lost; the next one replaces it.
    later, credentials = new_keys(plane, oka)
    old, new = password_of(oka), str(urlsplit(credentials.broker_url).password)
    oka.beat()
    plane.until(lambda: row(plane, oka).last_seen_at is not None)
    assert (logs_in(plane, oka.id, old), logs_in(plane, oka.id, new)) == (True, True)
    assert {authenticated(plane, each) for each in (token, credentials.api_token)} == {oka.id}
    assert row(plane, oka).rotation_asked_at is not None

    later.restart()

    done(plane, oka)
    plane.until(lambda: not logs_in(plane, oka.id, old))
    assert [logs_in(plane, oka.id, each) for each in (password_of(lost), new)] == [False, True]
    assert authenticated(plane, credentials.api_token) == oka.id
    assert row(plane, oka).keys_made_at is not None
    with pytest.raises(redis.ConnectionError):
        plane.until(lambda: watching.get_message(timeout=0.1) and False)
    with pytest.raises(Unauthenticated):
        authenticated(plane, token)
    thief = replace(oka, redis=later.redis)
    thief.restart()
    later.restart()
    plane.until(lambda: row(plane, oka).boot_id == later.boot)
    (refused,) = plane.rows(RawEvent, RawEvent.drone_id == oka.id)
    assert refused.error.startswith("the envelope cannot be opened")


def test_what_waits_for_the_drone_is_sealed_again_to_the_new_key_and_an_order_that_is_running_is_not(
    running: Plane, oka: DroneStandIn
) -> None:
    at_work = running.begun(oka)
    waiting = running.submit(drone="oka")
    running.until(lambda: oka.queued() == 1)
    drain(running.core, running.admin, oka.name)
    later, _ = rotate(running, oka)
    running.until(lambda: running.core.broker.redis.hlen(names.inbox_key(oka.id)) == 2)

    later.report(at_work, PROMPT)

    done(running, oka)
    running.until(lambda: later.queued() == 2)
    old_copy = str(later.redis.rpop(names.queue(oka.id)))
    assert envelope.key_id(public_key(oka.private_key)) in base64.b64decode(json.loads(old_copy)["body"]).decode()
    assert later.taken().order_id == waiting
    running.until(lambda: recipients(running, oka) == [envelope.key_id(public_key(later.private_key))])
    # The demand for other keys is over.
    assert [message.body.kind for message in later.inbox()] == ["drain"]
    open_ones = running.rows(InboxMessage, InboxMessage.drone_id == oka.id, InboxMessage.done_at.is_(None))
    assert [message.body["kind"] for message in open_ones] == ["drain"]


def recipients(plane: Plane, drone: DroneStandIn) -> list[str]:
    """The ids of the keys that the messages in its inbox are sealed to."""
    return [envelope.recipient_of(each) for each in plane.core.broker.redis.hgetall(names.inbox_key(drone.id)).values()]


def test_keys_are_replaced_only_on_demand_with_the_present_key_and_until_the_drone_registers_again_or_is_revoked(
    plane: Plane, oka: DroneStandIn
) -> None:
    with pytest.raises(Conflict) as unasked:
        new_keys(plane, oka)
    rotation.rotate_keys(plane.core, plane.admin, oka.name)
    rotation.rotate_keys(plane.core, plane.admin, oka.name)
    assert len(plane.rows(InboxMessage, InboxMessage.drone_id == oka.id)) == 1
    with pytest.raises(Forbidden) as stolen_token:
        new_keys(plane, oka, sealed_by=new_private_key())
    assert row(plane, oka).next_public_key is None
    codes = [each.value.code for each in (unasked, stolen_token)]
    assert codes == ["E-KEYS-UNASKED", "E-DRONE-KEY"]

    pending, _ = new_keys(plane, oka)
    join(plane.core, plane.admin, oka.name, private_key=oka.private_key)
    assert row(plane, oka).rotation_asked_at is None
    assert not logs_in(plane, oka.id, password_of(pending))
    later, credentials = rotate(plane, oka)
    rotation.revoke_keys(plane.core, plane.admin, oka.name)
    assert not logs_in(plane, oka.id, password_of(later))
    with pytest.raises(Unauthenticated):
        authenticated(plane, credentials.api_token)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_keys_that_are_revoked_while_their_first_reports_are_stored_stay_revoked(
    plane: Plane, oka: DroneStandIn
) -> None:
    core = plane.core
    later, _ = rotate(plane, oka)
    later.restart(), later.restart()
    entries = DroneStream(core.broker, oka.id).read(10)
    with core.database.write() as db:
        intake = Intake(db, core, db.get_one(Drone, oka.id), Gaps(), QUICK)
        rotation.revoke_keys(core, plane.admin, oka.name)
        revoked = row(plane, oka)
        intake.store(entries)
    assert (row(plane, oka).public_key, row(plane, oka).token_hash) == (revoked.public_key, revoked.token_hash)
    assert [each.entry_id for each in plane.rows(RawEvent)] == [entry.id for entry in entries]
    assert intake.outcome.user_with_new_keys is None


def test_a_heartbeat_from_before_the_keys_were_revoked_is_no_sign_of_life(plane: Plane, oka: DroneStandIn) -> None:
    beats = plane.collector()._beats
    opened = beats._opened({oka.id: oka.sealed_beat()})
    assert list(opened) == [oka.id]
    rotation.revoke_keys(plane.core, plane.admin, oka.name)
    assert [written.wake for written in beats._store(opened)] == [False]
    assert show_drone(plane.core, plane.admin, oka.name).status == "offline"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_drone_that_registers_while_its_keys_are_revoked_gets_no_others(plane: Plane, oka: DroneStandIn) -> None:
    core = plane.core
    with ThreadPoolExecutor(1) as pool:
        with core.database.write() as db:
            drone = db.get_one(Drone, oka.id, with_for_update=True)
            drone.keys_revoked_at, drone.revoked_public_key = core.clock.now(), drone.public_key
            drone.public_key, drone.token_hash = "", ""
            db.flush()
            again = pool.submit(join, core, plane.admin, oka.name, private_key=oka.private_key)
            wait_until(lambda: is_waiting(core.database))
        with pytest.raises(Conflict) as refused:
            again.result()
    assert (refused.value.code, row(plane, oka).token_hash) == ("E-DRONE-KEY-REVOKED", "")


def test_revoked_keys_are_refused_everywhere_and_the_orders_go_to_another_drone(
    running: Plane, oka: DroneStandIn
) -> None:
    token = "fd_" + "0" * 32
    running.edit(Drone, oka.id, token_hash=hashed(token))
    submitted = {running.submit(), running.submit()}
    running.until(lambda: oka.queued() == 2)
    order = oka.taken()
    oka.report(order, oka.started())
    running.reaches(order.order_id, "running")

    rotation.revoke_keys(running.core, running.admin, oka.name)

    with pytest.raises(redis.ConnectionError):
        oka.redis.ping()
    assert not logs_in(running, oka.id, password_of(oka))
    with pytest.raises(Unauthenticated):
        authenticated(running, token)
    for name in (oka.name, "another-name"):
        with pytest.raises(Conflict) as refused:
            join(running.core, running.admin, name, private_key=oka.private_key)
        assert refused.value.code == "E-DRONE-KEY-REVOKED"
    mila = running.drone("mila")
    running.until(lambda: mila.queued() == 2)
    assert {mila.taken().order_id, mila.taken().order_id} == submitted

    # With another key, it is the same drone.
    again = join(running.core, running.admin, oka.name)
    assert (again.id, row(running, oka).keys_revoked_at) == (oka.id, None)
    assert again.redis.ping()
