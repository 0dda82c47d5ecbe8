"""Drones on machines of their own that reach the fleet over TLS alone, while their links are cut and healed."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from control_plane.contract.declarations import drones
from tests.chaos.captures import Capture, capturing
from tests.chaos.fleet_under_load import FleetUnderLoad, Size
from tests.chaos.parts import ModelServer
from tests.chaos.stage import Stage, staged
from tests.support import free_port, needs, wait_until
from tests.support.broker import BrokerServer, TlsAddress
from tests.support.certificates import Authority
from tests.support.machines import Island, host_address, new_island

pytestmark = [pytest.mark.chaos, pytest.mark.long]
POLICY = "[repositories]\nfile_urls = true\n"
"""Of the drones' owner: the git remote is on a disk that all share, and its traffic not on the links."""
log = logging.getLogger(__name__)
PLAIN = (b"HTTP/1.", b"Count to ten", b"numbers.txt", b"AUTH", b"BRPOP", b"PUBLISH")
"""Words of requests, orders and commands of the broker that encryption hides."""


@dataclass
class Machines:
    """A fleet whose drones have a machine each, with a link to the host."""

    stage: Stage
    islands: tuple[Island, Island]
    captures: list[Capture]

    @property
    def ports(self) -> set[int]:
        """Those of the API and of the broker."""
        return {self.stage.fleet.api_port, self.stage.fleet.broker.port}

    def shown_online(self) -> set[str]:
        with self.stage.fleet.client() as client:
            return {each["name"] for each in client.call(drones.LIST) if each["status"] in {"online", "busy"}}

    def online(self, *names: str) -> None:
        wait_until(lambda: self.shown_online() >= set(names), seconds=300, every=0.5)

    def silent(self, *names: str) -> None:
        wait_until(lambda: not self.shown_online() & set(names), seconds=300, every=0.5)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Two machines, each with a drone and a model."""
    needs("redis-server")
    with ExitStack() as stack:
        islands = stack.enter_context(new_island()), stack.enter_context(new_island())
        address = stack.enter_context(host_address())
        for island in islands:
            island.reach(address)
        fleet = over_tls(tmp_path, address, islands)
        captures = [stack.enter_context(capturing(island.link, PLAIN)) for island in islands]
        stage = stack.enter_context(staged(fleet))
        port = urlsplit(fleet.model.url).port or 0
        for island in islands:
            log_file = fleet.root / f"model-{island.name}.log"
            model = ModelServer(fleet.root / "script.json", log_file, island=island, port=port)
            stack.callback(model.stop)
            model.start()
        yield Machines(stage, islands, captures)


def over_tls(root: Path, address: str, islands: tuple[Island, Island]) -> FleetUnderLoad:
    """A fleet that serves this address over TLS alone, with a certificate of an authority of its own."""
    authority, port, policy = Authority(root / "authority"), free_port(), root / "policy.toml"
    pair = authority.issue("fleet", address)
    policy.write_text(POLICY)
    server = Path(str(shutil.which("redis-server")))
    tls = TlsAddress(address, (pair.certificate, pair.key), authority.file)
    return FleetUnderLoad(
        root / "fleet",
        Size(drones=2, slots=2, step_seconds=0.1),
        front=f"https://{address}:{port}",
        api_port=port,
        machines=islands,
        drone_options=("--ca", str(authority.file)),
        make_broker=lambda directory: BrokerServer(directory, server, tls=tls),
        variables={
            "FLEET_HOST": address,
            "FLEET_TLS_CERT_FILE": str(pair.certificate),
            "FLEET_TLS_KEY_FILE": str(pair.key),
            "FLEET_CA_FILE": str(authority.file),
            "FLEET_ALLOW_FILE_URLS": "true",
            "DRONE_POLICY": str(policy),
        },
    )


@pytest.mark.timeout(600)
def test_twenty_orders_end_once_although_both_links_are_cut(machines: Machines) -> None:
    stage, (first, second) = machines.stage, machines.islands
    stage.submit(20)
    stage.running(2)
    with first.cut_off(silently=True), second.cut_off(silently=False):
        machines.silent("drone-1", "drone-2")
    stage.all_succeeded()
    only_tls_was_seen(machines)


@pytest.mark.timeout(3600)
def test_two_hundred_orders_end_once_although_links_are_cut_again_and_again(machines: Machines) -> None:
    stage, numbers = machines.stage, random.Random(15)
    stage.submit(200)
    stage.running(2)
    cuts = 0
    while not all(order.ended for order in stage.facts().orders.values()):
        number = numbers.randrange(2)
        with machines.islands[number].cut_off(silently=numbers.random() < 0.5):
            machines.silent(f"drone-{number + 1}")
        machines.online(f"drone-{number + 1}")
        cuts += 1
    found = stage.all_succeeded()
    log.info("%s cuts, %s runs, %s lost, %s resumed", cuts, found.runs, found.lost_runs, found.resumed_runs)
    assert cuts >= 5
    only_tls_was_seen(machines)


def only_tls_was_seen(machines: Machines) -> None:
    """Assert that each link carried TLS to the API and to the broker, and nothing else."""
    for capture in machines.captures:
        assert capture.ports == machines.ports
        assert (capture.not_tls(), capture.found) == ([], set())
        assert capture.bytes_seen > 100_000
