"""What the broker refuses to a drone is in the audit log, in few records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from control_plane.broker.broker import Broker
from control_plane.declarations.audit import AuditRecordDocument
from control_plane.operations.audit.reading import list_records
from control_plane.supervisor.broker_refusals import ACTION, BrokerRefusals
from shared import names
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.planes import Plane, hand_clock, plane_on
from tests.support.stand_in import DroneStandIn


@pytest.fixture
def any_server(core_factory: CoreFactory, sqlite_url: str, broker_server: BrokerServer) -> Iterator[Plane]:
    """A control plane on each kind of server."""
    yield from plane_on(core_factory(sqlite_url, broker=Broker(broker_server.url), clock=hand_clock()))


def recorded(plane: Plane) -> list[AuditRecordDocument]:
    return list(list_records(plane.core, plane.admin, action=ACTION, everywhere=True))


def steal(drone: DroneStandIn, *command: str) -> None:
    with pytest.raises(redis.exceptions.NoPermissionError):
        drone.redis.execute_command(*command)


def test_what_is_refused_to_a_drone_is_recorded_with_its_name_and_how_often(any_server: Plane) -> None:
    oka, mila = any_server.drone("oka"), any_server.drone("mila")
    steal(mila, "KEYS", "*")
    rounds = BrokerRefusals(any_server.core)
    rounds.record()
    assert recorded(any_server) == []

    for _ in range(3):
        steal(mila, "RPOP", names.queue(oka.id))
    steal(mila, "CONFIG", "GET", "*")
    rounds.record()
    rounds.record()

    (record,) = recorded(any_server)
    assert (record.actor, record.actor_id, record.actor_kind) == ("mila", mila.id, "drone")
    assert (record.outcome, record.code, record.count) == ("refused", "NOPERM", 4)
    assert (record.target, record.address) == (f"config|get, {names.queue(oka.id)}", "127.0.0.1")


def test_a_drone_cannot_keep_its_refusals_out_of_the_log_by_what_it_calls_itself(plane: Plane) -> None:
    mila = plane.drone("mila")
    rounds = BrokerRefusals(plane.core)
    rounds.record()
    mila.redis.execute_command("CLIENT", "SETINFO", "LIB-NAME", "a=b=addr=6.6.6.6:6")
    steal(mila, "KEYS", "*")
    rounds.record()
    (record,) = recorded(plane)
    assert (record.actor, record.address) == ("mila", "127.0.0.1")


def test_a_refused_log_in_is_of_an_unknown_sender(any_server: Plane) -> None:
    oka = any_server.drone("oka")
    rounds = BrokerRefusals(any_server.core)
    rounds.record()
    address = dict(oka.redis.connection_pool.connection_kwargs)
    wrong = {"username": oka.id, "password": "guess", "retry": Retry(NoBackoff(), 0)}
    with redis.Redis(port=address["port"], **wrong) as stranger, suppress(redis.RedisError):
        stranger.ping()
    rounds.record()
    (record,) = recorded(any_server)
    assert (record.actor_kind, record.target, record.code) == ("unknown", oka.id, "WRONGPASS")
    assert record.address == "127.0.0.1"


def test_a_thousand_refusals_with_names_that_act_on_terminals_are_one_record(plane: Plane) -> None:
    mila = plane.drone("mila")
    rounds = BrokerRefusals(plane.core)
    rounds.record()
    for number in range(1000):
        steal(mila, "LLEN", f"\x1b]0;{number}\x07\0" + "x" * 1000)
    rounds.record()
    (record,) = recorded(plane)
    assert record.target.isprintable()
    assert (len(record.target) <= 255, record.count >= 100) == (True, True)
