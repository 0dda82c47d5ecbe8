"""A run is claimed once, by its key alone, with no more rights than a drone has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from threading import Event
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

from control_plane.broker.broker import Broker
from drone.reporting.uplink import connect
from drone.worker.claim import Claim, Claims
from shared import names
from tests.support import wait_until
from tests.support.broker import BrokerServer

DRONE, RUN = "0123456789ab", "ba9876543210"


@pytest.fixture
def redis(broker: Broker) -> Redis:
    """A connection with the rights of the drone's own user."""
    broker.ensure_user(DRONE, sha256(b"password").hexdigest())
    return connect(broker.drone_url(DRONE, "password"))


def test_a_run_is_claimed_by_the_boot_and_generation_it_was_offered_to(broker: Broker, redis: Redis) -> None:
    claims, other = Claims(redis, DRONE, "boot-a"), Claims(redis, DRONE, "boot-b")
    absent = claims.claim(RUN, 2)
    assert (absent.granted, absent.found, broker.run_keys(DRONE, [RUN])[RUN]) == (False, "", "")
    broker.offer_run(DRONE, RUN, 2)
    assert [claims.claim(RUN, generation).granted for generation in (1, 3)] == [False, False]
    # Asking again after a lost answer finds the own claim.
    assert [claims.claim(RUN, 2).granted, claims.claim(RUN, 2).granted] == [True, True]
    assert broker.run_keys(DRONE, [RUN])[RUN] == names.claimed(2, "boot-a")
    assert broker.redis.ttl(names.run_key(DRONE, RUN)) > 0
    assert not other.claim(RUN, 2).granted
    broker.revoke_run(DRONE, RUN, 2)
    revoked = claims.claim(RUN, 2)
    assert (revoked.granted, revoked.revoked) == (False, True)


def test_of_claims_and_a_withdrawal_at_once_one_succeeds(broker: Broker, redis: Redis) -> None:
    runs, boots = [names.new_id() for _ in range(150)], [Claims(redis, DRONE, f"boot-{number}") for number in range(4)]
    for run in runs:
        broker.offer_run(DRONE, run, 1)
    with ThreadPoolExecutor(5) as pool:
        tries = [
            ([pool.submit(boot.claim, run, 1) for boot in boots], pool.submit(broker.withdraw_run, DRONE, run, 1))
            for run in runs
        ]
    won = [
        [*(claim.result().granted for claim in claims), withdrawal.result() == names.dispatched(1)]
        for claims, withdrawal in tries
    ]
    assert [each for each in won if sum(each) != 1] == []
    values = broker.run_keys(DRONE, runs)
    assert [values[run].startswith("claimed:") for run in runs] == [not each[-1] for each in won]


def test_a_claim_succeeds_although_its_connections_break(broker: Broker, redis: Redis) -> None:
    claims, ended = Claims(redis, DRONE, "boot-a"), Event()

    def break_connections() -> int:
        broken = 0
        while not ended.wait(0.001):
            broken += sum(broker.redis.client_kill_filter(_id=each["id"]) for each in connections(broker))
        return broken

    with ThreadPoolExecutor(1) as pool:
        breaking = pool.submit(break_connections)
        for run in (names.new_id() for _ in range(100)):
            broker.offer_run(DRONE, run, 1)
            assert wait_until(lambda run=run: answered(claims, run)).granted
            assert broker.run_keys(DRONE, [run])[run] == names.claimed(1, "boot-a")
        ended.set()
    assert breaking.result() > 10


def connections(broker: Broker) -> list[dict[str, Any]]:
    clients: list[dict[str, Any]] = broker.redis.client_list()
    return [client for client in clients if client["user"] == DRONE]


def answered(claims: Claims, run: str) -> Claim | None:
    """The claim, or None if the server did not answer: it is then repeated, as the drone does."""
    try:
        return claims.claim(run, 1)
    except RedisError:
        return None


def test_a_claim_needs_no_scripts_and_outlives_a_restart_of_the_server(broker_server: BrokerServer) -> None:
    broker = Broker(broker_server.url)
    broker.ensure_user(DRONE, sha256(b"password").hexdigest())
    broker.offer_run(DRONE, RUN, 1)
    with connect(broker.drone_url(DRONE, "password")) as redis:
        assert Claims(redis, DRONE, "boot-a").claim(RUN, 1).granted
    assert broker_server.acl_log() == []
    # Redis 7.0 loses transactions with several writes here; a claim has only one, and is kept.
    broker_server.restart()
    assert broker.run_keys(DRONE, [RUN])[RUN] == names.claimed(1, "boot-a")
    broker.close()
