"""The broker restarts, is down, misbehaves or is unreachable: drones keep working and report, and no order is lost."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

from control_plane.broker.broker import Broker
from control_plane.contract.declarations import providers
from control_plane.contract.declarations.providers import ProviderEdit
from shared import names
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.machines import Island
from tests.support.outages import (
    OutageFleet,
    Proxy,
    islander,
    model_on,
    outage_fleet,
    seconds_until,
)

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(300)]
CONSUMES_WITHIN = 15.0


# --- restarts --------------------------------------------------------------------------------------


def test_a_worker_consumes_again_after_each_of_three_restarts_and_no_order_is_lost(oka_at_work: OutageFleet) -> None:
    restarted_under_load(oka_at_work, 3, emptied=False)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("emptied", [False, True], ids=["kept", "emptied"])
def test_every_worker_consumes_again_after_each_of_20_restarts_and_no_order_is_lost(
    outages: OutageFleet, emptied: bool
) -> None:
    drones = [outages.drone(name, concurrency=2) for name in ("oka", "mila")]
    [drone.start() for drone in drones]
    [outages.warm(drone) for drone in drones]
    restarted_under_load(outages, 20, emptied=emptied)


def restarted_under_load(fleet: OutageFleet, times: int, *, emptied: bool) -> None:
    """Restart the broker repeatedly, with one order per restart, and assert the bound for every worker."""
    submitted, took = [], []
    for _ in range(times):
        submitted.append(fleet.submit("three"))
        fleet.server.stop(kill=True)
        if emptied:
            forget(fleet.server)
        fleet.server.start()
        took.append(seconds_until(lambda: all(drone.consumes() for drone in fleet.drones), at_most=60))
    assert max(took) <= CONSUMES_WITHIN, took
    [fleet.whole(order_id, 3, seconds=120) for order_id in submitted]


def forget(server: BrokerServer) -> None:
    """Delete the stopped server's data on disk, except its users."""
    shutil.rmtree(server.directory / "appendonlydir", ignore_errors=True)


# --- down ------------------------------------------------------------------------------------------


@pytest.fixture
def patient_fleet(
    sqlite_url: str, valkey: BrokerServer, tmp_path: Path, core_factory: CoreFactory
) -> Iterator[OutageFleet]:
    """A fleet whose drones may be silent for 10 s."""
    with outage_fleet(sqlite_url, valkey, tmp_path, core_factory, lost_after=10.0, own_beat=1.0) as fleet:
        yield fleet


@pytest.mark.long
@pytest.mark.parametrize("emptied", [False, True], ids=["kept", "emptied"])
def test_a_broker_that_is_gone_for_longer_than_a_drone_may_be_silent_loses_no_run_and_no_order(
    patient_fleet: OutageFleet, emptied: bool
) -> None:
    fleet = patient_fleet
    fleet.started("oka", concurrency=2)
    running = fleet.submit("thirty")
    fleet.results(running, 2)
    fleet.server.stop(kill=True)
    meanwhile = fleet.submit("three")
    time.sleep(12.0)
    if emptied:
        forget(fleet.server)
    fleet.server.start()
    fleet.whole(meanwhile, 3, seconds=120)
    fleet.whole(running, 30, seconds=240)


# --- connected, but deaf ----------------------------------------------------------------------------


@pytest.mark.long
def test_a_consumer_that_takes_nothing_is_rebuilt_and_one_that_stays_deaf_ends_its_worker(
    outages: OutageFleet, proxy: Proxy
) -> None:
    fleet = outages
    drone = fleet.started("oka", broker_address=f"127.0.0.1:{proxy.port}")
    proxy.spoil(asks_the_wrong_queue(drone.id))
    wait_until(lambda: proxy.changed)
    order_id = fleet.submit("three")
    wait_until(lambda: "rebuilding the consumer (1)" in drone.log(), seconds=60)
    fleet.whole(order_id, 3, seconds=60)
    assert "the consumer still takes no messages" not in drone.log()

    before = proxy.changed
    proxy.spoil(asks_the_wrong_queue(drone.id), later_ones_too=True)
    wait_until(lambda: proxy.changed > before)
    order_id = fleet.submit("three")
    wait_until(lambda: "the consumer still takes no messages" in drone.log(), seconds=120)
    proxy.mend()
    fleet.whole(order_id, 3, seconds=90)
    assert "the drone's worker ended (exit code 70)" in drone.stderr()


@pytest.fixture
def proxy(outages: OutageFleet) -> Proxy:
    """A proxy to the broker that can misbehave."""
    outages.doors.append(Proxy(outages.server.port))
    return outages.doors[-1]


def asks_the_wrong_queue(drone_id: str) -> Callable[[bytes], bytes]:
    """Redirect every request for a message to an empty list that the drone may read; all else passes unchanged."""
    words = [b"BRPOP", f"{names.queue(drone_id)}\x06\x16nothing".encode(), b"1"]
    command = b"*3\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    return lambda data: command if b"\r\nBRPOP\r\n" in data else data


@pytest.mark.long
def test_a_subscription_whose_server_says_nothing_any_more_is_given_up_within_30_s(valkey: BrokerServer) -> None:
    proxy = Proxy(valkey.port)
    broker = Broker(valkey.url.replace(str(valkey.port), str(proxy.port)))
    subscription = broker.subscribe(patterns=[names.BEAT_PATTERN])
    proxy.spoil(lambda _: b"")
    assert seconds_until(lambda: deafness(subscription), at_most=60) <= 30
    broker.close()
    proxy.close()


def deafness(subscription: redis.client.PubSub) -> bool:
    try:
        subscription.get_message(timeout=1.0)
    except redis.ConnectionError:
        return True
    return False


# --- cut off ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_drone_that_is_cut_off_for_90_s_is_stood_in_for(outages: OutageFleet, island: Island, tmp_path: Path) -> None:
    with cut_off_at_work(outages, island, tmp_path, "long") as order_id:
        late = outages.run_of(order_id).run_id
        with island.cut_off(silently=True):
            wait_until(lambda: outages.order(order_id).runs[0].status == "lost", seconds=90)
            time.sleep(15.0)
        # The drone notices that a later generation holds its order; the steps it recorded are stored as late steps.
        wait_until(lambda: any(step.run == late and step.late for step in outages.order(order_id).steps), seconds=60)
        order = outages.ended(order_id, seconds=240)
        assert (order.status, order.attempt) == ("succeeded", 2)


@pytest.mark.long
def test_a_silent_cut_is_noticed_within_30_s(outages: OutageFleet, island: Island, tmp_path: Path) -> None:
    with cut_off_at_work(outages, island, tmp_path, "thirty"), island.cut_off(silently=True):
        log = outages.drones[0].log
        signs = ("heartbeats cannot be sent", "events are kept in the journal")
        took = {sign: seconds_until(lambda sign=sign: re.search(sign, log()), at_most=60) for sign in signs}
        assert sum(took.values()) <= 30, took


@contextmanager
def cut_off_at_work(fleet: OutageFleet, island: Island, directory: Path, script: str) -> Iterator[str]:
    """A running order on an island's drone."""
    with ExitStack() as stack:
        url = stack.enter_context(model_on(island, directory))
        fleet.api.client.call(providers.EDIT, ProviderEdit(api_base=url), name="scripted")
        drone = islander(fleet, island, "oka", concurrency=2)
        stack.callback(drone.close)
        drone.start()
        fleet.warm(drone)
        order_id = fleet.submit(script)
        fleet.results(order_id, 2)
        yield order_id
