"""Pools of ephemeral drones: who joins them, how many drones they should have, and how their drones go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.attention.still_waiting import needs_care
from control_plane.broker.broker import Broker
from control_plane.contract.declarations.pools import PoolDocument, PoolEdit, PoolRequest, PoolRotation
from control_plane.core import Caller, Core
from control_plane.core.background.timings import Timings
from control_plane.db.access import JoinToken
from control_plane.db.audit import AuditRecord
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.drones.inbox import pending
from control_plane.operations.access import tokens
from control_plane.operations.drones import managing, pools, registration
from control_plane.operations.orders import canceling
from control_plane.supervisor.cleaning import remove_gone
from control_plane.supervisor.lost_runs import HeartbeatMonitor
from control_plane.supervisor.placing import place_queued
from shared import names
from shared.envelope import new_private_key
from shared.reasons import ForPool
from shared.registration import JoinTokenString, RegistrationRequest
from tests.integration.operations.test_operations_registration import new_secret, request
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of


@pytest.fixture
def core(core_factory: CoreFactory, database_url: str, broker: Broker, clock: HandClock) -> Core:
    """A Core with a real broker."""
    return core_factory(database_url, broker=broker, clock=clock)


@pytest.fixture
def heartbeats(core: Core) -> HeartbeatMonitor:
    """What the supervisor hears of the drones."""
    return HeartbeatMonitor(core, "me", Timings(), lambda **_: None)


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


def asks(pool: PoolDocument, name: str = "", **fields: Any) -> RegistrationRequest:
    """What a drone with a new key sends to join the pool."""
    return request(secret_of(pool), new_private_key(), name, **{"ephemeral": True, **fields})


def join(core: Core, pool: PoolDocument, **fields: Any) -> str:
    """Register a drone of the pool; returns its name."""
    return registration.register(core, asks(pool, **fields)).name


def refused(core: Core, pool: PoolDocument, name: str = "", **fields: Any) -> str:
    """The code with which a drone that wants to join the pool is refused."""
    return code_of(lambda: registration.register(core, asks(pool, name, **fields)))


def waits(core: Core, order_id: str) -> object:
    """What the order waits for."""
    with core.database.read() as db:
        return db.get_one(Order, order_id).facts.waits


def beat(core: Core, name: str, **values: Any) -> None:
    """Let the drone send a heartbeat now."""
    now = core.clock.now()
    with core.database.write() as db:
        drone = db.scalars(select(Drone).where(Drone.name == name, Drone.removed_at.is_(None))).one()
        drone.last_seen_at, drone.beat = now, values


def listen(core: Core, heartbeats: HeartbeatMonitor, *, seconds: float) -> None:
    """Let time pass in which the supervisor receives every heartbeat, its own and those of drones."""
    for _ in range(int(seconds // Timings().own_beat)):
        heartbeats.catch_up()
        later(core, seconds=Timings().own_beat)
    heartbeats.catch_up()


def gone_drones(core: Core, heartbeats: HeartbeatMonitor) -> list[str]:
    return remove_gone(core, heartbeats, Timings())


def figures(core: Core, caller: Caller, name: str = "burst") -> tuple[int, int, int, int]:
    """Waiting, drones, working, wanted."""
    shown = pools.show(core, caller, name)
    return shown.waiting, shown.drones, shown.working, shown.wanted


def drone_names(core: Core, caller: Caller) -> list[str]:
    return [drone.name for drone in managing.list_drones(core, caller)]


def test_a_pool_is_added_shown_changed_and_removed(core: Core, admin: Caller, pool: PoolDocument) -> None:
    """Only the answer that creates it has its token, and the database only a hash."""
    assert (pools.show(core, admin, "burst").token, pools.list_(core, admin)[0].token) == (None, None)
    with core.database.read() as db:
        assert secret_of(pool) not in str(vars(db.get_one(JoinToken, pool.token_id)))
    assert tokens.list_join_tokens(core, admin) == []
    assert code_of(lambda: add(core, admin, pool.name)) == "E-POOL-NAME"
    with core.database.read() as db:
        assert len(db.scalars(select(JoinToken)).all()) == 1
    before = join(core, pool, labels={"cloud": "no", "os": "linux"})
    assert (before.startswith("burst-"), len(before)) == (True, len("burst-") + 8)
    pools.edit(core, admin, pool.name, PoolEdit(max_drones=3, labels={"cloud": "new"}))
    after = [join(core, pool) for _ in range(2)]
    labels = [managing.show_drone(core, admin, name).labels for name in (before, *after)]
    assert labels == [{"cloud": "yes", "os": "linux"}, {"cloud": "new"}, {"cloud": "new"}]
    assert managing.show_drone(core, admin, before).pool == "burst"
    assert pools.edit(core, admin, pool.name, PoolEdit(labels=None)).labels == {}
    beat(core, before)
    assert pools.remove(core, admin, pool.name).drones == 3
    drone = managing.show_drone(core, admin, before)
    assert (drone.status, drone.pool, refused(core, pool)) == ("draining", "burst", "E-JOIN-REVOKED")
    with core.database.read() as db:
        assert pending(db, drone.id, None, "drain")
    assert add(core, admin, pool.name).token_id != pool.token_id
    assert add(core, add_organization(core, admin, "other"), pool.name).name == pool.name


def test_a_pools_token_is_only_for_ephemeral_drones_with_good_names_and_other_tokens_are_not(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    assert refused(core, pool, "stays", ephemeral=False) == "E-POOL-KIND"
    other = request(new_secret(core), ephemeral=True)
    assert code_of(lambda: registration.register(core, other)) == "E-POOL-KIND"
    assert [refused(core, pool, name) for name in ("Anna", "a b", "a" * 65)] == ["E-NAME"] * 3
    repeated = asks(pool)
    assert registration.register(core, repeated).drone_id == registration.register(core, repeated).drone_id
    # Drones are named after the pool, in 64 characters.
    wrong = ("", "Burst", "-a", "a/b", "a" * 56)
    assert {code_of(lambda name=name: add(core, admin, name)) for name in wrong} == {"E-NAME"}
    assert len(join(core, add(core, admin, "a" * 55))) == 64


def test_only_a_current_token_admits_drones_and_wants_them(core: Core, admin: Caller, pool: PoolDocument) -> None:
    short, member, order = add(core, admin, "short", expires_s=60), join(core, pool), submit(core, admin)
    new = pools.rotate(core, admin, pool.name, PoolRotation())
    assert refused(core, pool) == "E-JOIN-REVOKED"
    other = join(core, new)
    assert sorted(drone_names(core, admin)) == sorted([member, other])
    assert managing.show_drone(core, admin, other).labels == {"cloud": "yes"}
    later(core, seconds=60)
    assert refused(core, short) == "E-JOIN-EXPIRED"
    assert figures(core, admin)[3] == 1
    tokens.revoke_join_token(core, admin, new.token_id)
    place_queued(core)
    assert (refused(core, new), figures(core, admin)[3]) == ("E-JOIN-REVOKED", 0)
    assert pools.show(core, admin, pool.name).revoked_at is not None
    assert not isinstance(waits(core, order.id), ForPool)


def test_a_full_pool_admits_no_drone_until_one_left_or_fell_silent(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    first, second = join(core, pool), join(core, pool)
    users = core.broker.users()
    assert refused(core, pool) == "E-POOL-FULL"
    assert (sorted(drone_names(core, admin)), core.broker.users()) == (sorted([first, second]), users)
    beat(core, first), beat(core, second)
    managing.remove_drone(core, admin, first)
    third = join(core, pool)
    later(core, seconds=59)
    beat(core, third)
    assert refused(core, pool) == "E-POOL-FULL"
    later(core, seconds=1)
    assert join(core, pool) not in {first, second, third}


@pytest.mark.dialects
def test_of_many_drones_that_join_at_once_no_more_than_the_maximum_are_admitted(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: refused(core, pool), range(6)))
    assert sorted(answers) == ["", "", *["E-POOL-FULL"] * 4]
    assert len(drone_names(core, admin)) == 2


def test_a_drone_keeps_whom_it_serves_when_it_registers_again(core: Core, admin: Caller) -> None:
    other, key = add_organization(core, admin, "other"), new_private_key()

    def registered(serves: list[str]) -> str:
        return registration.register(core, request(new_secret(core, serves=serves), key)).drone_id

    first = registered(["other"])
    assert registered([]) == first
    with core.database.read() as db:
        assert db.get_one(Drone, first).serves == [other.organization_id]
    registered(["*"])
    assert managing.show_drone(core, admin, "anna").serves == ["other", "*"]


def test_a_drone_is_wanted_for_each_order_that_waits_and_each_that_works_up_to_the_maximum(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    order = submit(core, admin)
    assert figures(core, admin) == (1, 0, 0, 1)
    assert waits(core, order.id) == ForPool(pool="burst", drones=0, at_most=2)
    name = join(core, pool)
    place_queued(core)
    assert figures(core, admin) == (1, 1, 0, 1)
    assert waits(core, order.id) == ForPool(pool="burst", drones=1, at_most=2)
    canceling.cancel(core, admin, order.id)
    beat(core, name)
    assert figures(core, admin) == (0, 1, 0, 0)
    order = submit(core, admin)
    assert figures(core, admin) == (0, 1, 1, 1)
    start_run(core, order.id)
    assert submit(core, admin).status == "assigned"
    assert figures(core, admin) == (1, 1, 1, 2)
    submit(core, admin, labels={"cloud": "yes"})
    assert figures(core, admin) == (2, 1, 1, 2)


def test_large_drones_are_wanted_for_as_many_orders_as_they_have_slots(
    core: Core, admin: Caller, pool: PoolDocument
) -> None:
    pools.edit(core, admin, pool.name, PoolEdit(max_drones=9))
    beat(core, join(core, pool, concurrency=2))
    for order in [submit(core, admin) for _ in range(2)]:
        start_run(core, order.id)
    for _ in range(3):
        submit(core, admin)
    assert figures(core, admin) == (3, 1, 1, 3)


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


def test_a_drone_that_was_offline_for_ten_minutes_is_removed_with_its_user_and_keys(
    core: Core, admin: Caller, pool: PoolDocument, heartbeats: HeartbeatMonitor
) -> None:
    gone, stays = join(core, pool), make_drone(core, admin, "stays")
    beat(core, gone)
    never_started = join(core, pool)
    drone_id = managing.show_drone(core, admin, gone).id
    core.broker.redis.xadd(names.events_stream(drone_id), {"t": "event", "e": "x"})
    core.broker.redis.set(names.boot_key(drone_id), "x")
    listen(core, heartbeats, seconds=595)
    assert gone_drones(core, heartbeats) == []
    with core.database.read() as db:
        assert needs_care(core, db.get_one(Drone, drone_id)) == ""
    listen(core, heartbeats, seconds=5)
    assert gone_drones(core, heartbeats) == [never_started]
    # Its events are not all stored.
    core.broker.redis.delete(names.events_stream(drone_id))
    assert gone_drones(core, heartbeats) == [gone]
    assert drone_names(core, admin) == ["stays"]
    assert drone_id not in core.broker.users()
    assert not core.broker.redis.exists(names.boot_key(drone_id))
    with core.database.read() as db:
        record = db.scalars(select(AuditRecord).where(AuditRecord.target.startswith(gone))).one()
        assert needs_care(core, db.get_one(Drone, stays.drone_id)) != ""
    assert (record.actor_kind, record.action) == ("control plane", "remove_drone")
    assert record.target == f"{gone} (ephemeral, offline for 10 minutes)"


def test_a_drone_that_still_beats_is_not_removed_for_what_was_not_stored(
    core: Core, admin: Caller, pool: PoolDocument, heartbeats: HeartbeatMonitor, clock: HandClock
) -> None:
    """The control plane slept, its clock jumped, or the broker was away: what it stored last is old."""
    name = join(core, pool)
    beat(core, name)
    drone_id = managing.show_drone(core, admin, name).id
    clock.suspend(3600)
    assert gone_drones(core, heartbeats) == [], "no heartbeat could be received yet"
    listen(core, heartbeats, seconds=55)
    core.broker.redis.publish(names.beat_channel(drone_id), "")
    listen(core, heartbeats, seconds=55)
    assert gone_drones(core, heartbeats) == [], "one was received"
    core.broker.redis.set(names.lease_key(drone_id), "boot:time")
    listen(core, heartbeats, seconds=5)
    assert gone_drones(core, heartbeats) == [], "its lease is valid"
    core.broker.redis.delete(names.lease_key(drone_id))
    assert gone_drones(core, heartbeats) == [name]
