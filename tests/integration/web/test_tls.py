"""The HTTP interface over TLS, and what the doctor and the inbox say of a fleet that is less safe than it could be."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest

from control_plane.contract.client.fleet import FleetClient
from control_plane.core.certificates import ServerCertificate
from control_plane.operations.doctor import server_checks
from control_plane.operations.weaknesses import broker_encryption, certificate, weaknesses
from drone.installation.client import ControlPlane
from drone.installation.server_checks import certificate_end
from shared.errors import FleetError, Precondition
from shared.terminal.doctor import FAIL, OK, WARN
from shared.tls import WARN_BEFORE, expires_soon
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.certificates import DAY, Authority, Pair
from tests.support.database import CoreFactory
from tests.support.fleet import Api, api_on

MOMENT = timedelta(minutes=1)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def serve(sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Callable[[Pair], Api]]:
    """Serves with a certificate."""
    with ExitStack() as stack:

        def start(pair: Pair) -> Api:
            files = {"tls_cert_file": pair.certificate, "tls_key_file": pair.key}
            return stack.enter_context(api_on(sqlite_url, valkey, core_factory, **files))

        yield start


@contextmanager
def greeting(pair: Pair) -> Iterator[str]:
    """The URL of a server that does nothing but the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)

    class Greeting(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                context.wrap_socket(self.request, server_side=True).close()

    with ThreadingTCPServer(("127.0.0.1", 0), Greeting) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"https://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def errors(url: str, ca_file: str) -> list[FleetError]:
    """How `fleet` and a drone are refused."""
    found = []
    with FleetClient(url, ca_file=ca_file) as client, ControlPlane(url, ca_file=ca_file) as drone:
        for ask in (client.health, drone.server_time):
            with pytest.raises(FleetError) as refused:
                ask()
            found.append(refused.value)
    return found


def answers(api: Api, authority: Authority) -> bool:
    """Whether a new connection that trusts the authority succeeds."""
    with FleetClient(api.url, ca_file=str(authority.file)) as client:
        return bool(client.health())


def test_a_wrong_certificate_is_refused_for_what_is_wrong_with_it(authority: Authority, tmp_path: Path) -> None:
    right, file = {"host": "127.0.0.1"}, str(authority.file)
    cases: list[tuple[dict[str, Any], str, str, str]] = [
        ({**right, "begins": -DAY, "ends": -MOMENT}, file, "E-TLS-EXPIRED", "has expired"),
        ({**right, "begins": MOMENT}, file, "E-TLS-EARLY", "is not valid yet"),
        ({"host": "127.0.0.2"}, file, "E-TLS-HOST", "is for another host"),
        ({"host": "fleet.example.org"}, file, "E-TLS-HOST", "is for another host"),
        (right, "", "E-TLS-AUTHORITY", "unknown authority"),
        ({}, "", "E-TLS-AUTHORITY", "self-signed"),
    ]
    for given, trusted, code, told in cases:
        validity = {name: value for name, value in given.items() if name != "host"}
        own = Authority.self_signed(tmp_path, "127.0.0.1")
        with greeting(authority.issue("fleet", given["host"], **validity) if given else own) as url:
            for error in errors(url, trusted):
                assert (error.code, told in error.what, url.partition("//")[2] in error.what) == (code, True, True)
                assert error.next


def test_no_tls_and_a_file_without_certificates_are_called_that(tmp_path: Path, api: Api) -> None:
    for error in errors(api.url.replace("http://", "https://"), ""):
        assert (error.code, "TLS" in error.what) == ("E-TLS", True), error.what
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    with pytest.raises(Precondition, match=str(file)):
        ControlPlane("https://127.0.0.1:1", ca_file=str(file))


def test_a_drone_trusts_a_named_authority_and_knows_how_long_the_certificate_is_valid(authority: Authority) -> None:
    with greeting(authority.issue("fleet", "127.0.0.1", ends=3 * DAY)) as url:
        end = certificate_end(url, str(authority.file))
    assert expires_soon(end, datetime.now(UTC)).startswith("expires in 2 days")
    assert not expires_soon(end, end - WARN_BEFORE - MOMENT)


def test_a_replaced_certificate_is_served_without_a_restart_and_one_that_cannot_be_used_is_not(
    serve: Callable[..., Api], authority: Authority
) -> None:
    api = serve(pair := authority.issue("fleet", "127.0.0.1"))
    with ControlPlane(api.url, ca_file=str(authority.file)) as drone:
        assert drone.server_time()
    served = ssl.get_server_certificate(("127.0.0.1", api.port))
    authority.issue("fleet", "127.0.0.1")
    wait_until(lambda: ssl.get_server_certificate(("127.0.0.1", api.port)) != served)
    assert answers(api, authority)
    pair.certificate.write_bytes(authority.issue("other", "127.0.0.1").certificate.read_bytes())
    wait_until(lambda: "the changed certificate cannot be used" in api.log.read_text())
    assert answers(api, authority)


def test_a_key_of_another_certificate_is_refused_at_the_start(authority: Authority) -> None:
    one, other = authority.issue("one", "127.0.0.1"), authority.issue("other", "127.0.0.1")

    with pytest.raises(Precondition) as refused:
        ServerCertificate(one.certificate, other.key)

    assert refused.value.why == "the key belongs to another certificate"


def check(api: Api, code: str) -> dict[str, Any]:
    with api.http() as http:
        found = http.get("/api/v1/doctor").raise_for_status().json()
    return next(each for each in found if each["code"] == code)


def test_the_inbox_and_the_doctor_say_that_others_read_the_broker_and_all_drones_share_one_login(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    settings = {"public_broker_url": "redis://fleet.example.org:6379/0", "shared_broker_login": "drones:Zq8-hidden"}
    with api_on(sqlite_url, valkey, core_factory, **settings) as api:
        with api.browser() as browser:
            shown = unescape(browser.get("/").raise_for_status().text)
        for code in ("D-BROKER-TLS", "D-BROKER-USERS"):
            found = check(api, code)
            assert (found["state"], found["found"] in shown, found["fix"] in shown) == ("WARN", True, True), code
    assert "Zq8-hidden" not in shown
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


def test_a_broker_that_has_no_memory_limit_or_little_left_or_deletes_keys_is_told(api: Api) -> None:
    server = api.broker.redis
    before = server.config_get("maxmemory", "maxmemory-policy")
    try:
        server.config_set("maxmemory-policy", "allkeys-lru")
        evicting = check(api, "D-BROKER")
        server.config_set("maxmemory-policy", "noeviction")
        server.config_set("maxmemory", 0)
        unlimited = check(api, "D-BROKER")
        server.config_set("maxmemory", int(server.info("memory")["used_memory"] * 1.1))
        full = check(api, "D-BROKER")
    finally:
        for name, value in before.items():
            server.config_set(name, value)

    assert (evicting["state"], "allkeys-lru" in evicting["found"]) == ("WARN", True)
    assert (unlimited["state"], "no memory limit (maxmemory)" in unlimited["found"]) == ("OK", True)
    assert (full["state"], "accepts no messages when full" in full["found"]) == ("WARN", True)
    assert "FLEET_BROKER_MEMORY_MB" in full["fix"]


def test_a_broker_that_refuses_every_write_fails_its_check(api: Api) -> None:
    keys = api.broker.redis.dbsize()
    assert check(api, "D-BROKER")["state"] == "OK"
    with api.broker.refusing_writes():
        found = check(api, "D-BROKER")
    assert (found["state"], "NOREPLICAS" in found["found"]) == ("FAIL", True)
    assert api.broker.redis.dbsize() == keys


def test_flower_is_tried_at_the_port_of_its_address(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(address: tuple[str, int], **_: object) -> None:
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr("control_plane.operations.doctor.socket.create_connection", refuse)
    for url in ("https://flower.example", "http://flower.example", "https://flower.example:8443"):
        core = replace(api.core, settings=api.core.settings.model_copy(update={"flower_url": url}))
        assert [each.state for each in server_checks(core, "") if each.code == "D-FLOWER"] == [WARN]
    assert asked == [("flower.example", port) for port in (443, 80, 8443)]
