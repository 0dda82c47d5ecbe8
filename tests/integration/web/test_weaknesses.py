"""What `fleet doctor` and the inbox say of a fleet that is less safe than it could be."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from control_plane.operations.weaknesses import certificate, weaknesses
from shared.terminal.doctor import FAIL, OK, WARN, State
from tests.support.broker import BrokerServer
from tests.support.certificates import DAY, Authority
from tests.support.database import CoreFactory
from tests.support.fleet import Api, api_on


def check(api: Api, code: str) -> dict[str, Any]:
    with api.http() as http:
        found = http.get("/api/v1/doctor").raise_for_status().json()
    return next(each for each in found if each["code"] == code)


def inbox_page(api: Api) -> str:
    with api.browser() as browser:
        return browser.get("/").raise_for_status().text


@pytest.mark.parametrize(
    ("address", "state", "is_told"),
    [
        ("redis://fleet.example.org:6379/0", "WARN", True),
        ("rediss://fleet.example.org:6379/0", "OK", False),
        ("redis://127.0.0.1:6379/0", "OK", False),
    ],
)
def test_a_broker_that_others_reach_without_tls_is_told(  # noqa: PLR0917
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory, address: str, state: str, is_told: bool
) -> None:
    with api_on(sqlite_url, valkey, core_factory, public_broker_url=address) as api:
        assert check(api, "D-BROKER-TLS")["state"] == state
        assert ("broker passwords can be read" in inbox_page(api).replace("&#39;", "'")) is is_told


def test_the_inbox_says_that_all_drones_share_one_login(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with api_on(sqlite_url, valkey, core_factory, shared_broker_login="drones:Zq8-hidden") as api:
        found, shown = check(api, "D-BROKER-USERS"), inbox_page(api)
    assert (found["state"], "all drones share one login (FLEET_SHARED_BROKER_LOGIN)" in found["found"]) == (
        "WARN",
        True,
    )
    assert found["found"] in shown
    assert found["fix"] in shown
    assert "Zq8-hidden" not in shown


@pytest.mark.parametrize(
    ("ends", "state", "told"),
    [
        (timedelta(days=15), OK, ""),
        (timedelta(days=13, hours=1), WARN, "expires in 13 days"),
        (-timedelta(minutes=1), FAIL, "no new connection succeeds"),
    ],
)
def test_a_certificate_is_told_that_soon_will_expire(  # noqa: PLR0917
    tmp_path: Path, core_factory: CoreFactory, sqlite_url: str, ends: timedelta, state: State, told: str
) -> None:
    pair = Authority(tmp_path / "authority").issue("fleet", "127.0.0.1", begins=-DAY, ends=ends)
    core = core_factory(sqlite_url, tls_cert_file=pair.certificate, tls_key_file=pair.key)

    assert certificate(core).state == state
    assert [told in each.found for each in weaknesses(core)] == ([True] if told else [])


def test_the_inbox_shows_a_certificate_that_soon_will_expire(
    tmp_path: Path, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    pair = Authority(tmp_path / "authority").issue("fleet", "127.0.0.1", ends=3 * DAY)
    files = {"tls_cert_file": pair.certificate, "tls_key_file": pair.key}
    with api_on(sqlite_url, valkey, core_factory, **files) as api:
        assert "expires in 2 days" in inbox_page(api)
        assert check(api, "D-TLS-CERT")["state"] == "WARN"


def test_a_broker_without_a_memory_limit_or_with_little_left_is_told(api: Api) -> None:
    server = api.broker.redis
    before = server.config_get("maxmemory")["maxmemory"]
    try:
        server.config_set("maxmemory", 0)
        unlimited = check(api, "D-BROKER")
        server.config_set("maxmemory", int(server.info("memory")["used_memory"] * 1.1))
        full = check(api, "D-BROKER")
    finally:
        server.config_set("maxmemory", before)

    assert (unlimited["state"], "no memory limit (maxmemory)" in unlimited["found"]) == ("OK", True)
    assert (full["state"], "accepts no messages when full" in full["found"]) == ("WARN", True)
    assert "FLEET_BROKER_MEMORY_MB" in full["fix"]
