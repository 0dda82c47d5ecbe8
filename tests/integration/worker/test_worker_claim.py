"""A run is claimed once, by its key alone, with no more rights than a drone has."""

from __future__ import annotations

from hashlib import sha256

import pytest
from redis import Redis

from control_plane.broker.broker import Broker
from drone.reporting.uplink import connect
from drone.worker.claim import Claims
from shared import names

DRONE, RUN = "0123456789ab", "ba9876543210"


@pytest.fixture
def redis(broker: Broker) -> Redis:
    """A connection with the rights of the drone's own user."""
    broker.ensure_user(DRONE, sha256(b"password").hexdigest())
    return connect(broker.drone_url(DRONE, "password"))


def test_an_offered_run_is_claimed_and_keeps_its_time_to_live(broker: Broker, redis: Redis) -> None:
    broker.offer_run(DRONE, RUN, 2)
    claim = Claims(redis, DRONE, "boot-a").claim(RUN, 2)
    assert claim.granted
    assert broker.run_keys(DRONE, [RUN])[RUN] == names.claimed(2, "boot-a")
    assert broker.redis.ttl(names.run_key(DRONE, RUN)) > 0


def test_asking_again_after_a_lost_answer_finds_the_own_claim(broker: Broker, redis: Redis) -> None:
    broker.offer_run(DRONE, RUN, 2)
    claims = Claims(redis, DRONE, "boot-a")
    assert [claims.claim(RUN, 2).granted, claims.claim(RUN, 2).granted] == [True, True]


def test_another_boot_does_not_get_what_is_claimed(broker: Broker, redis: Redis) -> None:
    broker.offer_run(DRONE, RUN, 2)
    Claims(redis, DRONE, "boot-a").claim(RUN, 2)
    assert not Claims(redis, DRONE, "boot-b").claim(RUN, 2).granted


@pytest.mark.parametrize("generation", [1, 3])
def test_another_generation_is_not_claimed(broker: Broker, redis: Redis, generation: int) -> None:
    broker.offer_run(DRONE, RUN, 2)
    assert not Claims(redis, DRONE, "boot-a").claim(RUN, generation).granted


def test_an_absent_key_is_no_claim_and_stays_absent(broker: Broker, redis: Redis) -> None:
    claim = Claims(redis, DRONE, "boot-a").claim(RUN, 2)
    assert (claim.granted, claim.found) == (False, "")
    assert broker.run_keys(DRONE, [RUN])[RUN] == ""


def test_a_revoked_run_is_refused_and_known_as_such(broker: Broker, redis: Redis) -> None:
    broker.revoke_run(DRONE, RUN, 2)
    claim = Claims(redis, DRONE, "boot-a").claim(RUN, 2)
    assert (claim.granted, claim.revoked) == (False, True)


def test_claiming_works_after_the_server_forgot_its_scripts(broker: Broker, redis: Redis) -> None:
    claims = Claims(redis, DRONE, "boot-a")
    broker.redis.script_flush()
    broker.offer_run(DRONE, RUN, 2)
    assert claims.claim(RUN, 2).granted
    assert broker.redis.acl_log() == []
