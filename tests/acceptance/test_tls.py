"""A fleet that serves over TLS, with a certificate of an authority that no machine knows by itself."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import redis

from control_plane.broker.valkey_config import program as valkey_without_tls
from drone.installation.server_checks import certificate_end
from drone.model.scripted.server import ScriptedServer
from shared.tls import client_context
from tests.support import needs, wait_until, warm_processes
from tests.support.certificates import DAY, Authority
from tests.support.repositories import calc_project
from tests.support.warm_processes import DRONE
from tests.support.whole_fleet import WholeFleet, WorkstationDrone

pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]
OPEN = "127.0.0.2"
"""On this machine, but as open to others as any address but 127.0.0.1 is."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def tls(authority: Authority) -> tuple[str, ...]:
    """The options of a `fleet up` that is open to others."""
    pair = authority.issue("open", OPEN)
    files = ("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key), "--tls-ca", str(authority.file))
    return ("--host", OPEN, *files)


def test_a_drone_that_does_not_know_the_authority_does_not_join(
    start_fleet: Callable[..., WholeFleet], tmp_path: Path, tls: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without a broker that encrypts, which the fleet says."""
    for name in ("redis-server", "valkey-server"):
        (tmp_path / name).symlink_to(valkey_without_tls())
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fleet = start_fleet(drones=0, options=("--no-flower", *tls))
    token = fleet.fleet("token", "add").stdout.strip()
    environment = {**fleet.environment, "DRONE_HOME": str(tmp_path / "mila")}

    refused = warm_processes.run([*DRONE, "register", "--url", fleet.url, "--token", token], environment)

    assert refused.returncode == 5
    assert "is from an unknown authority" in refused.stderr
    assert "drone register --ca FILE" in refused.stderr
    assert fleet.json("drones") == []
    warning = next(line for line in fleet.log.read_text().splitlines() if line.startswith("WARNING"))
    assert "the broker's messages travel without TLS" in warning


def test_a_fleet_begins_to_use_tls_with_its_drones_pages_and_broker_and_a_certificate_that_expires_loses_no_order(
    start_fleet: Callable[..., WholeFleet],
    model: ScriptedServer,
    tmp_path: Path,
    authority: Authority,
    tls: tuple[str, ...],
) -> None:
    needs("redis-server")
    fleet = start_fleet()
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    before = fleet.json("drones")
    assert fleet.stop() == 0
    fleet.options = ("--flower-port", "0", *tls)
    fleet.start()
    mila = fleet.workstation("mila", "--ca", str(authority.file))
    mila.start()
    fleet.online("local-1", "mila", seconds=60)

    assert fleet.url.startswith("https://")
    assert before[0]["id"] in {drone["id"] for drone in fleet.json("drones")}
    assert fleet.ended(fleet.submit("Fix the test, script:fix", "--drone", "local-1")["id"])["status"] == "succeeded"
    context = client_context(str(authority.file))
    assert wait_until(lambda: _status(f"{fleet.url}/flower/api/workers", context), seconds=60) == 401
    examined = {each["code"]: each["state"] for each in json.loads(mila.run("doctor", "--json").stdout)["checks"]}
    assert (examined["D-SERVER-CERT"], examined["D-BROKER-CERT"]) == ("WARN", "WARN")
    port = json.loads((fleet.data / "up.json").read_text())["broker_port"]
    with redis.Redis(host=OPEN, port=port) as plain, pytest.raises(redis.ConnectionError):
        plain.ping()

    log = Path(mila.environment["DRONE_HOME"], "logs", "drone.log")
    running = fleet.submit("Wait, script:gate", "--drone", "mila")["id"]
    waiting = fleet.submit("Fix the test, script:fix", "--drone", "mila")["id"]
    work = wait_until(lambda: _workspace(mila), seconds=60)
    wait_until(lambda: "tool_call" in [step["kind"] for step in fleet.order(running)["steps"]], seconds=60)
    with _expired(fleet, authority):
        wait_until(lambda: f"the certificate of {OPEN}" in log.read_text())
        told = mila.run("doctor").stdout
        (work / "go").touch()
        wait_until(lambda: not (work / "go").exists())
    orders = [fleet.ended(order) for order in (running, waiting)]
    assert [(order["status"], order["attempt"], len(order["runs"])) for order in orders] == [("succeeded", 1, 1)] * 2
    assert "has expired" in log.read_text()
    assert "has expired" in told


def _workspace(drone: WorkstationDrone) -> Path | None:
    found = list(Path(drone.environment["DRONE_HOME"]).glob("workspace/sessions/*/work"))
    return found[0] if found else None


@contextmanager
def _expired(fleet: WholeFleet, authority: Authority) -> Iterator[None]:
    """Let the certificate have expired meanwhile, and cut what is connected; renew it afterwards."""
    authority.issue("open", OPEN, begins=-2 * DAY, ends=-timedelta(minutes=1))
    try:
        wait_until(lambda: all(_present_expired(fleet, authority)))
        _cut_connections(fleet, authority)
        yield
    finally:
        authority.issue("open", OPEN)
        wait_until(lambda: not any(_present_expired(fleet, authority)))


def _present_expired(fleet: WholeFleet, authority: Authority) -> list[bool]:
    """Whether the API, and whether the broker, presents an expired certificate to new connections."""
    ports = json.loads((fleet.data / "up.json").read_text())
    refused = []
    for port in (ports["port"], ports["broker_port"]):
        try:
            certificate_end(f"https://{OPEN}:{port}", str(authority.file))
        except ssl.SSLCertVerificationError as error:
            refused.append("expired" in error.verify_message)
        else:
            refused.append(False)
    return refused


def _cut_connections(fleet: WholeFleet, authority: Authority) -> None:
    """Cut all connections to the broker, as a restart or a cut cable would: only a new one checks the certificate."""
    known = json.loads((fleet.data / "up.json").read_text())
    login = {"username": "control", "password": known["broker_password"]}
    ignore_time = {"ssl": True, "ssl_ca_certs": str(authority.file), "ssl_include_verify_flags": [0x200000]}
    with redis.Redis(host=OPEN, port=known["broker_port"], **login, **ignore_time) as client:
        for kind in ("normal", "pubsub"):
            client.client_kill_filter(_type=kind, skipme=True)


def _status(url: str, context: ssl.SSLContext) -> int | None:
    try:
        return httpx.get(url, verify=context, trust_env=False).status_code
    except httpx.TransportError:
        return None
