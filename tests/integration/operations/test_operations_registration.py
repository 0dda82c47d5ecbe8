"""How a drone joins, and to whom it belongs then, against a real broker."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import redis

from control_plane.broker.broker import Broker
from control_plane.contract.declarations.drones import DroneEdit
from control_plane.contract.declarations.tokens import JoinTokenRequest
from control_plane.contract.declarations.users import UserEdit, UserRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.operations.access import tokens, users
from control_plane.operations.drones import managing, registration
from shared.envelope import Binding, key_id, new_private_key, open_envelope, public_key
from shared.errors import FleetError, Unauthenticated, Unreachable
from shared.events import ABILITIES
from shared.registration import Credentials, JoinTokenString, RegistrationAnswer, RegistrationRequest
from tests.support.broker import BrokerServer
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import later
from tests.support.organizations import add_organization
from tests.support.refusals import code_of

KEY = new_private_key()
KIM, JO = "kim@example.org", "jo@example.org"


@pytest.fixture
def core(core_factory: CoreFactory, database_url: str, broker: Broker, clock: HandClock) -> Core:
    """A Core with a real broker."""
    return core_factory(database_url, broker=broker, clock=clock)


def new_secret(core: Core, caller: Caller | None = None, **fields: Any) -> str:
    """The secret of a join token, by default good for one drone, for an hour."""
    made = tokens.create_join_token(core, caller or system_caller(core), JoinTokenRequest(**fields))
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


def is_cut_off(core: Core, credentials: Credentials) -> bool:
    """Whether neither the API nor the broker accepts them."""
    with pytest.raises(Unauthenticated):
        registration.authenticate_drone(core, credentials.api_token)
    with redis.Redis.from_url(credentials.broker_url) as own, pytest.raises(redis.AuthenticationError):
        own.ping()
    return True


def test_a_drone_that_joined_can_log_in_to_the_broker_and_to_the_api(core: Core, admin: Caller) -> None:
    secret = new_secret(core)
    about: dict[str, Any] = {"labels": {"os": "linux"}, "concurrency": 3, "version": "1", "host": "box"}
    answer = registration.register(core, request(secret, **about))
    credentials = credentials_in(answer)
    with redis.Redis.from_url(credentials.broker_url) as own:
        assert own.set(f"fleet:{answer.drone_id}:lease", "x")
    assert registration.authenticate_drone(core, credentials.api_token).drone_id == answer.drone_id
    with core.database.read() as db:
        assert key_id(base64.b64decode(answer.public_key)) == core.vault.box_keys(db).current_id

    drone = managing.show_drone(core, admin, "anna")
    assert (drone.status, drone.sandbox, drone.concurrency, drone.host) == ("offline", "bwrap", 3, "box")
    assert (drone.labels, drone.last_seen_at, drone.running, drone.queued) == ({"os": "linux"}, None, 0, 0)
    assert not any(each in drone.model_dump_json() for each in (credentials.api_token, secret))


def test_registering_again_or_leaving_makes_the_old_credentials_useless(core: Core, admin: Caller) -> None:
    """The first does not use the token again, and the second frees the name."""
    secret = new_secret(core)
    first, second = (registration.register(core, request(secret)) for _ in range(2))
    assert is_cut_off(core, credentials_in(first))
    new = credentials_in(second)
    drone = registration.authenticate_drone(core, new.api_token)
    assert (drone.name, drone.drone_id) == ("anna", first.drone_id)
    assert tokens.list_join_tokens(core, admin)[0].used == 1
    assert len(managing.list_drones(core, admin)) == 1

    registration.unregister(core, drone)
    assert is_cut_off(core, new)
    again = registration.register(core, request(new_secret(core), key=new_private_key()))
    assert managing.show_drone(core, admin, "anna").id == again.drone_id != first.drone_id


def test_a_label_that_a_token_fixed_stays_when_the_drone_registers_with_another_token(core: Core) -> None:
    fixed, free = new_secret(core, labels={"gpu": "no"}), new_secret(core)
    labels = {"gpu": "yes", "os": "linux"}
    for each in (fixed, free):
        assert registration.register(core, request(each, labels=labels)).labels == {"gpu": "no", "os": "linux"}


def test_a_name_that_another_key_holds_is_a_conflict_and_costs_no_token(core: Core) -> None:
    registration.register(core, request(new_secret(core)))
    second = new_secret(core)
    assert refusal_of(core, request(second, key=new_private_key())).code == "E-DRONE-NAME"
    assert refusal_of(core, request(second, name="berta")).code == "E-DRONE-KEY-TAKEN"
    assert registration.register(core, request(second, key=new_private_key(), name="berta")).name == "berta"


def test_a_forged_an_expired_a_used_and_a_revoked_token_are_told_apart(core: Core, admin: Caller) -> None:
    short, used, revoked = new_secret(core, expires_s=60), new_secret(core), new_secret(core, uses=7)
    ids = {each.uses: each.id for each in tokens.list_join_tokens(core, admin)}
    tokens.revoke_join_token(core, admin, ids[7])
    registration.register(core, request(used))
    later(core, seconds=60)
    berta = {"key": new_private_key(), "name": "berta"}
    refusals = [refusal_of(core, request(each, **berta)) for each in ("0" * 64, short, used, revoked)]
    assert [each.code for each in refusals] == ["E-JOIN-UNKNOWN", "E-JOIN-EXPIRED", "E-JOIN-USED", "E-JOIN-REVOKED"]
    assert {type(each) for each in refusals} == {Unauthenticated}


@pytest.mark.dialects
def test_of_many_that_come_at_once_a_token_for_three_and_a_name_let_three_and_one_in(core: Core, admin: Caller) -> None:
    def at_once(uses: int, names: list[str]) -> list[str]:
        """The codes of the answers, and how often the token was used."""
        secret = new_secret(core, uses=uses)
        wanted = [request(secret, key=new_private_key(), name=name) for name in names]
        with ThreadPoolExecutor(10) as pool:
            codes = sorted(pool.map(lambda each: code_of(lambda: registration.register(core, each)), wanted))
        used = next(each.used for each in tokens.list_join_tokens(core, admin) if each.uses == uses)
        return [*codes, str(used)]

    assert at_once(3, [f"drone-{number}" for number in range(10)]) == ["", "", "", *["E-JOIN-USED"] * 7, "3"]
    assert at_once(10, ["anna"] * 4) == ["", *["E-DRONE-NAME"] * 3, "1"]


def test_a_name_or_public_key_that_is_none_and_a_drone_from_before_the_first_release_are_refused_and_use_no_token(
    core: Core, admin: Caller
) -> None:
    secret = new_secret(core, uses=2)
    registration.register(core, request(secret))
    bad: list[tuple[str, dict[str, Any]]] = [
        *(("E-NAME", {"name": name}) for name in ("", "Anna", "../x", "x" * 10_000)),
        *(("E-DRONE-KEY", {"public_key": key}) for key in ("", "not base64!", "AAAA", "é")),
        *(("E-DRONE-VERSION", {"abilities": each, "key": new_private_key()}) for each in ((), ("resume", "teams"))),
        ("E-DRONE-VERSION", {"abilities": ()}),
    ]
    assert [(refusal_of(core, request(secret, **given)).code, given) for _, given in bad] == bad
    assert tokens.list_join_tokens(core, admin)[0].used == 1


def test_with_the_broker_down_no_token_is_used_and_a_drone_can_be_removed(
    core: Core, admin: Caller, valkey: BrokerServer
) -> None:
    secret = new_secret(core)
    valkey.stop()
    assert isinstance(refusal_of(core, request(secret)), Unreachable)
    assert tokens.list_join_tokens(core, admin)[0].used == 0
    valkey.start()
    assert registration.register(core, request(secret)).name == "anna"
    valkey.stop()
    assert managing.remove_drone(core, admin, "anna").status == "removed"
    assert managing.list_drones(core, admin) == []


def user(core: Core, caller: Caller, email: str) -> Caller:
    """The caller as a new user."""
    made = users.add(core, caller, UserRequest(email=email, name=email, role="admin"))
    return replace(caller, user_id=made.id, user=email)


def owner_after(core: Core, admin: Caller, secret: str, name: str = "anna") -> str | None:
    """Whose drone it is after a registration of it with this secret."""
    registration.register(core, request(secret, name=name, key=KEY if name == "anna" else new_private_key()))
    return managing.show_drone(core, admin, name).owner


def test_a_drone_belongs_to_the_user_with_whose_join_token_it_registered(core: Core, admin: Caller) -> None:
    """A registration that is only repeated does not undo a change of the owner."""
    kim = user(core, admin, KIM)
    user(core, admin, JO)
    secret = new_secret(core, kim)
    assert owner_after(core, admin, secret) == KIM
    assert [each.owner for each in tokens.list_join_tokens(core, admin)] == [KIM]
    assert owner_after(core, admin, new_secret(core), "script") is None
    assert owner_after(core, admin, new_secret(core, owner=KIM), "given") == KIM

    managing.edit_drone(core, admin, "anna", DroneEdit(owner=JO))
    assert owner_after(core, admin, secret) == JO
    assert [owner_after(core, admin, new_secret(core, owner=each)) for each in (KIM, JO, None)] == [KIM, JO, JO]

    user(core, add_organization(core, admin, "other"), "oka@example.org")
    assert code_of(lambda: new_secret(core, owner="oka@example.org")) == "E-USER-404"


def test_join_tokens_of_a_disabled_or_removed_user_admit_no_drone(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    for each in (admin, other):
        users.add(core, each, UserRequest(email=KIM, name="Kim", role="operator"))
    unused, elsewhere = new_secret(core, owner=KIM), new_secret(core, other, owner=KIM)
    users.edit(core, admin, KIM, UserEdit(disabled=True))
    assert refusal_of(core, request(unused)).code == "E-USER-DISABLED"
    users.edit(core, admin, KIM, UserEdit(disabled=False))
    assert owner_after(core, admin, new_secret(core, owner=KIM)) == KIM
    ended = users.remove(core, admin, KIM).ended
    assert ended is not None
    assert (ended.drones, len(ended.join_tokens)) == (["anna"], 2)
    assert managing.show_drone(core, admin, "anna").owner == "not a member"
    assert managing.drain(core, admin, "anna").draining
    assert refusal_of(core, request(unused, new_private_key(), "late")).code == "E-JOIN-REVOKED"
    assert owner_after(core, other, elsewhere, "there") == KIM
