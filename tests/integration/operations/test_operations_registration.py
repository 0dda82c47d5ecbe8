"""How a drone joins, against a real broker."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis

from control_plane.broker.broker import Broker
from control_plane.core import Core
from control_plane.declarations.tokens import JoinTokenRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.access import tokens
from control_plane.operations.drones import managing, registration
from shared.envelope import Binding, key_id, new_private_key, open_envelope, public_key
from shared.errors import FleetError, NotFound, Unauthenticated, Unreachable
from shared.events import ABILITIES
from shared.registration import Credentials, JoinTokenString, RegistrationAnswer, RegistrationRequest
from tests.support.broker import BrokerServer
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import later
from tests.support.refusals import code_of

KEY = new_private_key()


@pytest.fixture
def core(core_factory: CoreFactory, database_url: str, broker: Broker, clock: HandClock) -> Core:
    """A Core with a real broker."""
    return core_factory(database_url, broker=broker, clock=clock)


@pytest.fixture
def secret(core: Core) -> str:
    """The secret of a join token that is good for one drone, for an hour."""
    return new_secret(core)


def new_secret(core: Core, **fields: Any) -> str:
    made = tokens.create_join_token(core, system_caller(core), JoinTokenRequest(**fields))
    parsed = JoinTokenString.parse(str(made.token))
    assert parsed is not None
    return parsed.secret


def request(secret: str, key: bytes = KEY, name: str = "anna", **fields: Any) -> RegistrationRequest:
    public = base64.b64encode(public_key(key)).decode()
    values: dict[str, Any] = {"secret": secret, "name": name, "machine_id": "m1", "public_key": public}
    return RegistrationRequest(**{**values, "sandbox": "bwrap", "abilities": ABILITIES, **fields})


def credentials_in(answer: RegistrationAnswer, key: bytes = KEY) -> Credentials:
    """What the drone reads in its answer."""
    binding = Binding(direction="credentials", drone=answer.drone_id)
    sender = base64.b64decode(answer.public_key)
    opened = open_envelope(answer.credentials, recipients={key_id(public_key(key)): key}, sender=sender, expect=binding)
    return Credentials.model_validate_json(opened.body)


def refusal_of(core: Core, wanted: RegistrationRequest) -> FleetError:
    """What a registration is turned away with."""
    with pytest.raises(FleetError) as refusal:
        registration.register(core, wanted)
    return refusal.value


@pytest.mark.dialects
def test_a_drone_that_joined_can_log_in_to_the_broker_and_to_the_api(core: Core, secret: str) -> None:
    about: dict[str, Any] = {"labels": {"os": "linux"}, "concurrency": 3, "version": "1", "host": "box"}
    answer = registration.register(core, request(secret, **about))
    credentials = credentials_in(answer)
    with redis.Redis.from_url(credentials.broker_url) as own:
        assert own.set(f"fleet:{answer.drone_id}:lease", "x")
    assert registration.authenticate_drone(core, credentials.api_token).drone_id == answer.drone_id
    with core.database.read() as db:
        assert key_id(base64.b64decode(answer.public_key)) == core.vault.box_keys(db).current_id

    drone = managing.show_drone(core, system_caller(core), "anna")
    assert (drone.status, drone.sandbox, drone.concurrency, drone.host) == ("offline", "bwrap", 3, "box")
    assert (drone.labels, drone.last_seen_at, drone.running, drone.queued) == ({"os": "linux"}, None, 0, 0)
    assert not any(each in drone.model_dump_json() for each in (credentials.api_token, secret))


def test_registering_again_makes_the_old_credentials_useless_and_does_not_use_the_token_again(
    core: Core, secret: str
) -> None:
    first, second = (registration.register(core, request(secret)) for _ in range(2))
    old, new = credentials_in(first), credentials_in(second)
    with pytest.raises(Unauthenticated):
        registration.authenticate_drone(core, old.api_token)
    assert registration.authenticate_drone(core, new.api_token).name == "anna"
    with redis.Redis.from_url(old.broker_url) as cut_off, pytest.raises(redis.AuthenticationError):
        cut_off.ping()
    assert second.drone_id == first.drone_id
    assert tokens.list_join_tokens(core, system_caller(core))[0].used == 1
    assert len(managing.list_drones(core, system_caller(core))) == 1


def test_a_label_that_a_token_fixed_stays_when_the_drone_registers_with_another_token(core: Core) -> None:
    fixed, free = new_secret(core, labels={"gpu": "no"}), new_secret(core)
    labels = {"gpu": "yes", "os": "linux"}
    for each in (fixed, free):
        assert registration.register(core, request(each, labels=labels)).labels == {"gpu": "no", "os": "linux"}


def test_a_name_that_another_key_holds_is_a_conflict_and_costs_no_token(core: Core) -> None:
    registration.register(core, request(new_secret(core)))
    second = new_secret(core)
    assert refusal_of(core, request(second, key=new_private_key())).code == "E-DRONE-NAME"
    taken = refusal_of(core, request(second, name="berta"))
    assert (taken.code, "anna" in taken.what) == ("E-DRONE-KEY-TAKEN", True)
    assert registration.register(core, request(second, key=new_private_key(), name="berta")).name == "berta"


def test_a_forged_an_expired_a_used_and_a_revoked_token_are_told_apart(core: Core) -> None:
    short, used, revoked = new_secret(core, expires_s=60), new_secret(core), new_secret(core, uses=7)
    admin = system_caller(core)
    ids = {each.uses: each.id for each in tokens.list_join_tokens(core, admin)}
    tokens.revoke_join_token(core, admin, ids[7])
    registration.register(core, request(used))
    later(core, seconds=60)
    refusals = [
        refusal_of(core, request(each, key=new_private_key(), name="berta"))
        for each in ("0" * 64, short, used, revoked)
    ]
    assert [each.code for each in refusals] == ["E-JOIN-UNKNOWN", "E-JOIN-EXPIRED", "E-JOIN-USED", "E-JOIN-REVOKED"]
    assert {type(each) for each in refusals} == {Unauthenticated}
    assert all("fleet token add" in each.next for each in refusals)


@pytest.mark.dialects
def test_a_token_for_three_lets_three_of_ten_in_that_come_at_once(core: Core) -> None:
    secret = new_secret(core, uses=3)
    wanted = [request(secret, key=new_private_key(), name=f"drone-{number}") for number in range(10)]
    with ThreadPoolExecutor(10) as pool:
        codes = sorted(pool.map(lambda each: code_of(lambda: registration.register(core, each)), wanted))
    assert codes == ["", "", "", *["E-JOIN-USED"] * 7]
    assert tokens.list_join_tokens(core, system_caller(core))[0].used == 3


@pytest.mark.dialects
def test_of_two_that_want_one_name_at_once_one_gets_it(core: Core) -> None:
    secret = new_secret(core, uses=10)
    with ThreadPoolExecutor(4) as pool:
        wanted = [request(secret, key=new_private_key()) for _ in range(4)]
        codes = list(pool.map(lambda each: code_of(lambda: registration.register(core, each)), wanted))
    assert sorted(codes) == ["", "E-DRONE-NAME", "E-DRONE-NAME", "E-DRONE-NAME"]
    assert tokens.list_join_tokens(core, system_caller(core))[0].used == 1


def test_a_name_or_public_key_that_is_none_is_refused(core: Core, secret: str) -> None:
    bad = [
        *(("E-NAME", {"name": name}) for name in ("", "Anna", "../x", "x" * 10_000)),
        *(("E-DRONE-KEY", {"public_key": key}) for key in ("", "not base64!", "AAAA", "é")),
    ]
    assert [(refusal_of(core, request(secret, **given)).code, given) for _, given in bad] == bad


def test_with_the_broker_down_nothing_is_used_up_and_a_drone_can_be_removed(
    core: Core, secret: str, valkey: BrokerServer
) -> None:
    valkey.stop()
    assert isinstance(refusal_of(core, request(secret)), Unreachable)
    assert tokens.list_join_tokens(core, system_caller(core))[0].used == 0
    valkey.start()
    assert registration.register(core, request(secret)).name == "anna"
    valkey.stop()
    assert managing.remove_drone(core, system_caller(core), "anna").status == "removed"
    assert managing.list_drones(core, system_caller(core)) == []
    with pytest.raises(NotFound):
        managing.remove_drone(core, system_caller(core), "anna")


def test_a_drone_that_leaves_is_cut_off_and_its_name_is_free(core: Core, secret: str) -> None:
    credentials = credentials_in(registration.register(core, request(secret)))
    registration.unregister(core, registration.authenticate_drone(core, credentials.api_token))
    with pytest.raises(Unauthenticated):
        registration.authenticate_drone(core, credentials.api_token)
    with redis.Redis.from_url(credentials.broker_url) as cut_off, pytest.raises(redis.AuthenticationError):
        cut_off.ping()
    again = registration.register(core, request(new_secret(core), key=new_private_key()))
    assert managing.show_drone(core, system_caller(core), "anna").id == again.drone_id
