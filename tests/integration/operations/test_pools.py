"""Pools of ephemeral drones: who joins them, how many drones they should have, and how their drones go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.attention.still_waiting import needs_care
from control_plane.broker.broker import Broker
from control_plane.core import Caller, Core
from control_plane.db.access import JoinToken
from control_plane.db.audit import AuditRecord
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.declarations.pools import PoolDocument, PoolEdit, PoolRequest, PoolRotation
from control_plane.drones.inbox import pending
from control_plane.operations.access import tokens
from control_plane.operations.drones import managing, pools, registration
from control_plane.operations.orders import canceling
from control_plane.supervisor.broker_users import ensure_users
from control_plane.supervisor.gone_members import remove_gone
from control_plane.supervisor.placing import place_queued
from shared import names
from shared.envelope import new_private_key
from shared.errors import Conflict, FleetError, Forbidden, Invalid, NotFound
from shared.events import ABILITIES
from shared.reasons import ForPool
from shared.registration import JoinTokenString
from tests.integration.operations.test_operations_registration import new_secret, refusal_of, request
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.organizations import add_organization


@pytest.fixture
def core(core_factory: CoreFactory, database_url: str, broker: Broker, clock: HandClock) -> Core:
    """A Core with a real broker."""
    return core_factory(database_url, broker=broker, clock=clock)


@pytest.fixture
def pool(core: Core, admin: Caller) -> PoolDocument:
    """A pool of at most two drones with a label, and a project for orders."""
    make_project(core, admin)
    return add(core, admin, labels={"cloud": "yes"}, max_drones=2)


def add(core: Core, caller: Caller, name: str = "burst", **fields: Any) -> PoolDocument:
    return pools.add(core, caller, PoolRequest(name=name, **fields))


def secret_of(pool: PoolDocument) -> str:
    parsed = JoinTokenString.parse(str(pool.token))
    assert parsed is not None
    return parsed.secret


def join(core: Core, pool: PoolDocument, name: str = "", **fields: Any) -> str:
    """Register a drone of the pool with a new key; returns its name."""
    wanted = request(secret_of(pool), new_private_key(), name, **{"ephemeral": True, **fields})
    return registration.register(core, wanted).name


def refused(core: Core, pool: PoolDocument, name: str = "", **fields: Any) -> str:
    """The code with which a drone that wants to join the pool is refused."""
    wanted = request(secret_of(pool), new_private_key(), name, **{"ephemeral": True, **fields})
    return refusal_of(core, wanted).code


def beat(core: Core, name: str, **values: Any) -> None:
    """Let the drone send a heartbeat now."""
    now = core.clock.now()
    with core.database.write() as db:
        drone = db.scalars(select(Drone).where(Drone.name == name, Drone.removed_at.is_(None))).one()
        drone.last_seen_at, drone.beat = now, {"abilities": list(ABILITIES), **values}


def figures(core: Core, caller: Caller, name: str = "burst") -> tuple[int, int, int, int]:
    """Waiting, drones, working, wanted."""
    shown = pools.show(core, caller, name)
    return shown.waiting, shown.drones, shown.working, shown.wanted


def drone_names(core: Core, caller: Caller) -> list[str]:
    return [drone.name for drone in managing.list_drones(core, caller)]


# --- the pool itself -----------------------------------------------------------------------


def test_only_the_answer_that_creates_a_pool_has_its_token_and_the_database_only_a_hash(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    assert (pools.show(core, admin, "burst").token, pools.list_(core, admin)[0].token) == (None, None)
    with core.database.read() as db:
        token = db.get_one(JoinToken, pool.token_id)
    assert secret_of(pool) not in str(vars(token))
    assert tokens.list_join_tokens(core, admin) == []


def test_two_pools_with_one_name_are_a_conflict_that_says_so(core: Core, admin: Caller, pool: PoolDocument) -> None:
    with pytest.raises(Conflict) as refusal:
        add(core, admin, pool.name)
    assert (refusal.value.code, refusal.value.what) == ("E-POOL-NAME", "pool 'burst' already exists")
    with core.database.read() as db:
        assert len(db.scalars(select(JoinToken)).all()) == 1


def test_the_name_of_a_removed_pool_can_be_used_again(core: Core, admin: Caller, pool: PoolDocument) -> None:
    pools.remove(core, admin, pool.name)
    assert add(core, admin, pool.name).token_id != pool.token_id


@pytest.mark.parametrize("name", ["", "Burst", "a b", "-a", "a/b", "ä", "a" * 56, "a" * 300])
def test_a_pool_has_a_name_after_which_drones_can_be_named(core: Core, admin: Caller, name: str) -> None:
    with pytest.raises(Invalid) as refusal:
        add(core, admin, name)
    assert refusal.value.code == "E-NAME"


def test_the_longest_name_leaves_room_for_the_suffix_of_a_drone(core: Core, admin: Caller) -> None:
    longest = add(core, admin, "a" * 55)
    assert len(join(core, longest)) == 64


def test_a_pool_of_another_organization_does_not_exist_here(core: Core, admin: Caller, pool: PoolDocument) -> None:
    other = replace(add_organization(core, admin, "other"), everywhere=False)
    for act in (
        lambda: pools.show(core, other, pool.name),
        lambda: pools.edit(core, other, pool.name, PoolEdit(max_drones=1)),
        lambda: pools.rotate(core, other, pool.name, PoolRotation()),
        lambda: pools.remove(core, other, pool.name),
    ):
        with pytest.raises(NotFound):
            act()
    assert pools.list_(core, other) == []
    assert add(core, other, pool.name).name == pool.name


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_others_than_admins_read_pools_and_change_none(
    core: Core, admin: Caller, pool: PoolDocument, role: Any
) -> None:
    caller = replace(admin, role=role, everywhere=False)
    assert pools.show(core, caller, pool.name).max_drones == 2
    for act in (
        lambda: add(core, caller, "other"),
        lambda: pools.edit(core, caller, pool.name, PoolEdit(max_drones=1)),
        lambda: pools.rotate(core, caller, pool.name, PoolRotation()),
        lambda: pools.remove(core, caller, pool.name),
    ):
        with pytest.raises(Forbidden):
            act()


# --- joining -------------------------------------------------------------------------------


def test_a_drone_without_a_name_gets_one_from_its_pool_and_the_pools_labels(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    name = join(core, pool, labels={"cloud": "no", "os": "linux"})
    drone = managing.show_drone(core, admin, name)
    assert name.startswith("burst-")
    assert len(name) == len("burst-") + 8
    assert (drone.pool, drone.labels) == ("burst", {"cloud": "yes", "os": "linux"})
    assert managing.show_drone(core, admin, join(core, pool, "mine")).name == "mine"


def test_a_drone_that_repeats_its_registration_after_a_lost_answer_is_the_same_drone(
    core: Core, pool: PoolDocument
) -> None:
    key = new_private_key()
    wanted = request(secret_of(pool), key, "", ephemeral=True)
    assert registration.register(core, wanted).drone_id == registration.register(core, wanted).drone_id


def test_a_full_pool_admits_no_drone_and_leaves_nothing_of_it_behind(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    there = [join(core, pool), join(core, pool)]
    users = core.broker.users()
    assert refused(core, pool) == "E-POOL-FULL"
    assert (sorted(drone_names(core, admin)), core.broker.users()) == (sorted(there), users)


def test_of_many_drones_that_join_at_once_no_more_than_the_maximum_are_admitted(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    def attempt(_: int) -> str:
        try:
            return join(core, pool)
        except FleetError as refusal:
            return refusal.code

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(attempt, range(6)))
    assert answers.count("E-POOL-FULL") == 4
    assert len(drone_names(core, admin)) == 2


def test_a_drone_that_left_or_fell_silent_makes_room_for_another(core: Core, admin: Caller, pool: PoolDocument) -> None:
    first, second = join(core, pool), join(core, pool)
    beat(core, first), beat(core, second)
    managing.remove_drone(core, admin, first)
    third = join(core, pool)
    later(core, seconds=59)
    beat(core, third)
    assert refused(core, pool) == "E-POOL-FULL"
    later(core, seconds=1)
    assert join(core, pool) not in {first, second, third}


def test_a_rotated_token_admits_no_drone_the_new_one_does_and_present_drones_stay(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    member = join(core, pool)
    new = pools.rotate(core, admin, pool.name, PoolRotation())
    assert refused(core, pool) == "E-JOIN-REVOKED"
    other = join(core, new)
    assert sorted(drone_names(core, admin)) == sorted([member, other])
    assert managing.show_drone(core, admin, other).labels == {"cloud": "yes"}


def test_tokens_that_expired_or_were_revoked_admit_no_drone(core: Core, admin: Caller, pool: PoolDocument) -> None:
    short = add(core, admin, "short", expires_s=60)
    later(core, seconds=60)
    assert refused(core, short) == "E-JOIN-EXPIRED"
    tokens.revoke_join_token(core, admin, pool.token_id)
    assert refused(core, pool) == "E-JOIN-REVOKED"
    assert pools.show(core, admin, pool.name).revoked_at is not None
    pools.remove(core, admin, "short")
    assert refused(core, short) == "E-JOIN-REVOKED"


def test_a_pools_token_is_only_for_ephemeral_drones_and_other_tokens_are_not(core: Core, pool: PoolDocument) -> None:
    assert refused(core, pool, "stays", ephemeral=False) == "E-POOL-KIND"
    assert refusal_of(core, request(new_secret(core), ephemeral=True)).code == "E-POOL-KIND"


@pytest.mark.parametrize("name", ["Anna", "a b", "a" * 65])
def test_a_name_that_an_ephemeral_drone_chose_is_checked(core: Core, pool: PoolDocument, name: str) -> None:
    assert refused(core, pool, name) == "E-NAME"


# --- how many drones there should be ---------------------------------------------------------


def test_orders_that_wait_say_for_which_pool_and_it_wants_a_drone_for_each_up_to_its_maximum(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    first = submit(core, admin)
    assert figures(core, admin) == (1, 0, 0, 1)
    assert first.reason == "waits for a drone of the pool burst (0 of at most 2 are there)"
    submit(core, admin, labels={"cloud": "yes"}), submit(core, admin)
    assert figures(core, admin) == (3, 0, 0, 2)


def test_an_order_that_no_drone_of_the_pool_could_run_is_not_counted(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    make_drone(core, admin, "named", draining=True)
    other = replace(add_organization(core, admin, "other"), everywhere=False)
    make_project(core, other)
    elsewhere = submit(core, other)
    labelled = submit(core, admin, labels={"gpu": "yes"})
    submit(core, admin, drone="named")
    assert figures(core, admin) == (0, 0, 0, 0)
    assert "pool" not in elsewhere.reason + labelled.reason


def test_a_working_drone_is_wanted_and_another_for_what_waits_behind_it(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    name = join(core, pool)
    beat(core, name)
    order = submit(core, admin)
    assert figures(core, admin) == (0, 1, 1, 1)
    start_run(core, order.id)
    waiting = submit(core, admin)
    assert waiting.status == "assigned"
    assert figures(core, admin) == (1, 1, 1, 2)


def test_large_drones_are_wanted_for_as_many_orders_as_they_have_slots(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    pools.edit(core, admin, pool.name, PoolEdit(max_drones=9))
    name = join(core, pool, concurrency=2)
    beat(core, name)
    for order in [submit(core, admin) for _ in range(2)]:
        start_run(core, order.id)
    for _ in range(3):
        submit(core, admin)
    assert figures(core, admin) == (3, 1, 1, 3)


def test_a_drone_that_starts_is_there_and_still_wanted(core: Core, admin: Caller, pool: PoolDocument) -> None:
    order = submit(core, admin)
    join(core, pool)
    place_queued(core)
    assert figures(core, admin) == (1, 1, 0, 1)
    with core.database.read() as db:
        assert db.get_one(Order, order.id).facts.waits == ForPool(pool="burst", drones=1, at_most=2)


def test_an_idle_drone_is_not_wanted(core: Core, admin: Caller, pool: PoolDocument) -> None:
    beat(core, join(core, pool))
    assert figures(core, admin) == (0, 1, 0, 0)


def test_a_pool_with_a_revoked_token_wants_no_more_drones_and_orders_do_not_wait_for_it(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    order = submit(core, admin)
    tokens.revoke_join_token(core, admin, pool.token_id)
    place_queued(core)
    assert figures(core, admin) == (1, 0, 0, 0)
    with core.database.read() as db:
        assert "no drone is registered" in db.get_one(Order, order.id).reason
    canceling.cancel(core, admin, order.id)
    assert figures(core, admin) == (0, 0, 0, 0)


def test_an_edit_changes_the_maximum_and_the_labels_of_drones_that_join_later(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    before = join(core, pool)
    pools.edit(core, admin, pool.name, PoolEdit(max_drones=3, labels={"cloud": "new"}))
    after = [join(core, pool) for _ in range(2)]
    labels = [managing.show_drone(core, admin, name).labels for name in (before, *after)]
    assert labels == [{"cloud": "yes"}, {"cloud": "new"}, {"cloud": "new"}]
    pools.edit(core, admin, pool.name, PoolEdit(labels=None))
    assert pools.show(core, admin, pool.name).labels == {}


@pytest.mark.parametrize("number", [0, -1, 1001])
def test_a_maximum_is_at_least_one(number: int) -> None:
    with pytest.raises(ValueError, match="max_drones"):
        PoolRequest(name="x", max_drones=number)
    with pytest.raises(ValueError, match="max_drones"):
        PoolEdit(max_drones=number)


# --- how its drones go -----------------------------------------------------------------------


def test_the_drones_of_a_removed_pool_are_drained_and_told_so(core: Core, admin: Caller, pool: PoolDocument) -> None:
    name = join(core, pool)
    beat(core, name)
    assert pools.remove(core, admin, pool.name).drones == 1
    drone = managing.show_drone(core, admin, name)
    assert (drone.status, drone.pool) == ("draining", "burst")
    with core.database.read() as db:
        assert pending(db, drone.id, None, "drain")


def test_a_drone_that_was_offline_for_ten_minutes_is_removed_with_its_user_and_keys(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    gone, stays = join(core, pool), make_drone(core, admin, "stays")
    beat(core, gone)
    drone_id = managing.show_drone(core, admin, gone).id
    core.broker.redis.set(names.lease_key(drone_id), "x")
    later(core, seconds=599)
    assert remove_gone(core) == []
    with core.database.read() as db:
        assert needs_care(core, db.get_one(Drone, drone_id)) == ""
    later(core, seconds=1)
    assert remove_gone(core) == [gone]
    assert drone_names(core, admin) == ["stays"]
    assert drone_id not in core.broker.users()
    assert not core.broker.redis.exists(names.lease_key(drone_id))
    with core.database.read() as db:
        record = db.scalars(select(AuditRecord).order_by(AuditRecord.seq.desc()).limit(1)).one()
        assert needs_care(core, db.get_one(Drone, stays.drone_id)) != ""
    assert (record.actor_kind, record.action) == ("control plane", "remove_drone")
    assert record.target == f"{gone} (ephemeral, offline for 10 minutes)"


def test_a_drone_whose_events_are_not_all_stored_stays_until_they_are(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    name = join(core, pool)
    beat(core, name)
    stream = names.events_stream(managing.show_drone(core, admin, name).id)
    core.broker.redis.xadd(stream, {"t": "event", "e": "x"})
    later(core, minutes=20)
    assert remove_gone(core) == []
    core.broker.redis.delete(stream)
    assert remove_gone(core) == [name]


def test_a_drone_that_registered_and_never_started_is_removed_after_ten_minutes(core: Core, pool: PoolDocument) -> None:
    name = join(core, pool)
    later(core, seconds=599)
    assert remove_gone(core) == []
    later(core, seconds=1)
    assert remove_gone(core) == [name]


def test_an_order_in_the_queue_of_a_drone_that_unregisters_waits_for_another(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    name = join(core, pool)
    beat(core, name)
    order = submit(core, admin)
    drone = managing.show_drone(core, admin, name)
    with core.database.read() as db:
        identity = registration.AuthenticatedDrone(drone.id, db.get_one(Drone, drone.id).organization_id, name)
    registration.unregister(core, identity)
    place_queued(core)
    ensure_users(core)
    with core.database.read() as db:
        row = db.get_one(Order, order.id)
        assert (row.status, row.attempt, row.drone_id) == ("queued", 0, None)
        assert row.facts.waits == ForPool(pool="burst", drones=0, at_most=2)
