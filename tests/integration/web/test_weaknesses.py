"""What `fleet doctor` and the inbox say of a fleet that is less safe than it could be."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

from control_plane.operations.weaknesses import broker_encryption, certificate, weaknesses
from shared.terminal.doctor import FAIL, OK, WARN
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


def test_the_inbox_and_the_doctor_say_that_others_read_the_broker_and_all_drones_share_one_login(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    settings = {"public_broker_url": "redis://fleet.example.org:6379/0", "shared_broker_login": "drones:Zq8-hidden"}
    with api_on(sqlite_url, valkey, core_factory, **settings) as api:
        shown = unescape(inbox_page(api))
        for code in ("D-BROKER-TLS", "D-BROKER-USERS"):
            found = check(api, code)
            assert (found["state"], found["found"] in shown, found["fix"] in shown) == ("WARN", True, True), code
    assert "Zq8-hidden" not in shown


def test_a_broker_on_the_same_machine_or_over_tls_is_no_weakness(sqlite_url: str, core_factory: CoreFactory) -> None:
    for address in ("rediss://fleet.example.org:6379/0", "redis://127.0.0.1:6379/0"):
        assert broker_encryption(core_factory(sqlite_url, public_broker_url=address)).state == OK


def test_a_certificate_is_told_that_soon_will_expire(
    tmp_path: Path, core_factory: CoreFactory, sqlite_url: str
) -> None:
    authority = Authority(tmp_path / "authority")
    for ends, state, told in (
        (timedelta(days=15), OK, ""),
        (timedelta(days=13, hours=1), WARN, "13 days"),
        (-timedelta(minutes=1), FAIL, "no new connection"),
    ):
        pair = authority.issue("fleet", "127.0.0.1", begins=-DAY, ends=ends)
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
