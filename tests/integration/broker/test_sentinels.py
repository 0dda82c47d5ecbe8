"""A broker of a primary and a replica, which Sentinels watch: the control plane follows, with all users of drones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from control_plane.broker.broker import Broker
from control_plane.broker.users import DroneUser
from control_plane.broker.valkey_config import program
from shared import names
from shared.errors import Invalid, Unreachable
from tests.support import needs, wait_until
from tests.support.broker import PASSWORD, BrokerServer, TlsAddress
from tests.support.certificates import Authority
from tests.support.replicated_broker import ReplicatedBroker

pytestmark = [pytest.mark.timeout(180), pytest.mark.apart]
OKA, MILA = "0" * 11 + "a", "0" * 11 + "b"
OLD, NEW, NEWEST = "0" * 64, "1" * 64, "2" * 64


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    needs("haproxy")
    made = ReplicatedBroker(tmp_path / "broker", program())
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def sentinel_broker(servers: ReplicatedBroker) -> Iterator[Broker]:
    """The control plane's connection to whichever server is the primary."""
    made = Broker(servers.url, servers.public_url)
    yield made
    made.close()


def drones_on(server: redis.Redis) -> set[str]:
    return {OKA, MILA} & set(server.acl_users())


def is_replica(server: BrokerServer, broker: Broker) -> None:
    """Wait until the Sentinels would promote this server."""
    wait_until(lambda: server.redis.info("replication").get("master_link_status") == "up", seconds=60)
    wait_until(lambda: ("127.0.0.1", server.port) in broker._address.replicas(broker.redis), seconds=60)


def passwords(server: BrokerServer) -> list[str]:
    """The hashes of the drone's passwords; Redis writes a "#" before them, Valkey does not."""
    return [each.lstrip("#") for each in dict(server.redis.acl_getuser(OKA))["passwords"]]


def users_of_drones_are_on_the_replica_too(servers: ReplicatedBroker, broker: Broker) -> None:
    both = [server.redis for server in servers.servers]

    broker.ensure_user(OKA, OLD)
    broker.ensure_user(MILA, OLD)
    assert [drones_on(server) for server in both] == [{OKA, MILA}] * 2

    both[1].acl_deluser(OKA)
    assert broker.ensure_users({OKA: DroneUser((OLD,))}, broker.users_by_server()) == [MILA, OKA]
    assert [drones_on(server) for server in both] == [{OKA}] * 2

    broker.remove_user(OKA)
    assert [drones_on(server) for server in both] == [set()] * 2


def test_the_promoted_server_has_messages_and_users_and_the_one_that_returns_follows_it(
    servers: ReplicatedBroker, sentinel_broker: Broker
) -> None:
    broker, (old, new) = sentinel_broker, servers.servers
    users_of_drones_are_on_the_replica_too(servers, broker)
    subscription = broker.subscribe("here")
    broker.ensure_user(OKA, OLD)
    new.stop(kill=True)
    broker.ensure_user(OKA, NEW)
    new.start()
    is_replica(new, broker)

    old.stop(kill=True)
    wait_until(lambda: reached(broker, new) and led_to(servers) == new.port, seconds=60)
    broker.ensure_users({OKA: DroneUser((NEW,))}, broker.users_by_server())
    broker.publish_order(drone_id=OKA, order_id=OKA, run_id=MILA, generation=1, envelope="sealed")
    assert passwords(new) == [NEW]
    assert new.redis.llen(names.queue(OKA)) == 1
    wait_until(lambda: hears(broker, subscription))
    subscription.close()

    broker.ensure_user(OKA, NEWEST)
    old.start()
    assert old.redis.info("replication")["role"] == "master"
    led = set[int | None]()
    wait_until(lambda: led.add(led_to(servers)) or follows(old, new), seconds=60, every=0.1)
    assert led == {new.port}, "no drone is led to the primary that returned"

    is_replica(old, broker)
    broker.ensure_users({OKA: DroneUser((NEWEST,))}, broker.users_by_server())
    assert passwords(old) == [NEWEST]
    new.stop(kill=True)
    wait_until(lambda: reached(broker, old) and led_to(servers) == old.port, seconds=60)


def test_the_control_plane_follows_over_tls(tmp_path: Path) -> None:
    needs("redis-server")
    authority = Authority(tmp_path / "authority")
    pair = authority.issue("broker", "127.0.0.1")
    tls = TlsAddress("127.0.0.1", (pair.certificate, pair.key), authority.file)
    servers = ReplicatedBroker(tmp_path / "broker", Path(str(shutil.which("redis-server"))), tls=tls)
    broker = Broker(servers.url, servers.public_url, ca_file=str(authority.file))
    stranger = Broker(servers.url, servers.public_url)
    try:
        servers.start()
        old, new = servers.servers
        broker.ensure_user(OKA, OLD)
        with pytest.raises(Unreachable):
            stranger.ping()
        old.stop(kill=True)
        wait_until(lambda: reached(broker, new), seconds=60)
        assert drones_on(new.redis) == {OKA}
        broker.publish_order(drone_id=OKA, order_id=OKA, run_id=MILA, generation=1, envelope="sealed")
        assert new.redis.llen(names.queue(OKA)) == 1
    finally:
        broker.close()
        stranger.close()
        servers.close()


def led_to(servers: ReplicatedBroker) -> int | None:
    """The port of the server that answers at the drones' address; None while there is none."""
    login = {"username": "control", "password": PASSWORD, "socket_timeout": 5, "retry": Retry(NoBackoff(), 0)}
    with redis.Redis(port=servers.port, **login) as client:
        try:
            return int(client.info("server")["tcp_port"])
        except redis.RedisError:
            return None


def follows(server: BrokerServer, primary: BrokerServer) -> bool:
    """Whether it is a replica that has everything; it closes its connections when it becomes one."""
    try:
        said = server.redis.info("replication")
    except redis.ConnectionError:
        return False
    return (said["role"], said.get("master_port"), said.get("master_link_status")) == ("slave", primary.port, "up")


def reached(broker: Broker, server: BrokerServer) -> bool:
    """Whether the broker answers, and is this server."""
    try:
        broker.ping()
    except Unreachable:
        return False
    return bool(broker.redis.info("server")["tcp_port"] == server.port)


def hears(broker: Broker, subscription: redis.client.PubSub) -> bool:
    """Whether a message arrives that is published now; the first attempts may only find the connection broken."""
    broker.redis.publish("here", "x")
    try:
        return subscription.get_message(timeout=1.0) is not None
    except redis.ConnectionError:
        return False


def test_that_no_sentinel_answers_is_said_without_the_password() -> None:
    broker = Broker("redis+sentinel://control:secret@127.0.0.1:1,127.0.0.1:2/fleet", "redis://127.0.0.1/0")
    with pytest.raises(Unreachable) as failure:
        broker.ping()
    broker.close()
    assert failure.value.code == "E-BROKER-UNREACHABLE"
    assert "127.0.0.1:1,127.0.0.1:2" in failure.value.what
    assert "secret" not in str(failure.value)


def test_what_is_no_address_of_sentinels_is_refused_and_drones_need_an_address_of_their_own() -> None:
    for url, public_url in (
        ("redis+sentinel://control:x@one:26379,two:26379", "redis://one/0"),
        ("redis+sentinel://control:x@one:port/fleet", "redis://one/0"),
        ("redis+sentinel://control:x@one,,two/fleet", "redis://one/0"),
        ("sentinel://control:x@one:26379/fleet", "redis://one/0"),
        ("redis+sentinel://control:x@one,two/fleet", None),
    ):
        with pytest.raises(Invalid) as refusal:
            Broker(url, *([public_url] if public_url else []))
        assert (url, refusal.value.code) == (url, "E-BROKER-URL")
