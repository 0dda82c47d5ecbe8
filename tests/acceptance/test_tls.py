"""A fleet that serves over TLS, with a certificate of an authority that no machine knows by itself."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import redis

from control_plane.broker.valkey_config import program as valkey_without_tls
from drone.model.scripted.server import ScriptedServer
from shared.tls import client_context
from tests.support import needs, wait_until, warm_processes
from tests.support.certificates import DAY, Authority
from tests.support.repositories import calc_project
from tests.support.warm_processes import DRONE
from tests.support.whole_fleet import WholeFleet

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


def test_a_fleet_begins_to_use_tls_with_its_drones_pages_and_broker_and_presents_a_renewed_certificate_at_once(
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

    # One that has expired meanwhile is replaced, too.
    for validity in ({"begins": -2 * DAY, "ends": -timedelta(minutes=1)}, {}):
        old = presented(fleet)
        authority.issue("open", OPEN, **validity)
        wait_until(lambda old=old: not old & presented(fleet))
    assert fleet.ended(fleet.submit("Fix the test, script:fix", "--drone", "mila")["id"])["status"] == "succeeded"


def presented(fleet: WholeFleet) -> set[str]:
    """The certificates that new connections to the API and the broker are given."""
    known = json.loads((fleet.data / "up.json").read_text())
    return {ssl.get_server_certificate((OPEN, known[port])) for port in ("port", "broker_port")}


def _status(url: str, context: ssl.SSLContext) -> int | None:
    try:
        return httpx.get(url, verify=context, trust_env=False).status_code
    except httpx.TransportError:
        return None
