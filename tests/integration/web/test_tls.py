"""The HTTP interface over TLS: who is trusted, what a wrong certificate is told to be, and a renewed one."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from control_plane.client.fleet import FleetClient
from control_plane.core.certificates import ServerCertificate
from drone.installation.certificates import certificate_end
from drone.installation.client import ControlPlane
from shared.errors import FleetError, Precondition
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

        def start(pair: Pair, **settings: Any) -> Api:
            files = {"tls_cert_file": pair.certificate, "tls_key_file": pair.key}
            return stack.enter_context(api_on(sqlite_url, valkey, core_factory, **files, **settings))

        yield start


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


def test_an_authority_of_ones_own_is_trusted_if_it_is_named(serve: Callable[..., Api], authority: Authority) -> None:
    api = serve(authority.issue("fleet", "127.0.0.1"))

    assert answers(api, authority)
    with ControlPlane(api.url, ca_file=str(authority.file)) as drone:
        assert drone.server_time()


@pytest.mark.parametrize(
    ("host", "validity", "told"),
    [
        ("127.0.0.1", {"begins": -DAY, "ends": -MOMENT}, "E-TLS-EXPIRED has expired"),
        ("127.0.0.1", {"begins": MOMENT}, "E-TLS-EARLY is not valid yet"),
        ("127.0.0.2", {}, "E-TLS-HOST is for another host"),
        ("fleet.example.org", {}, "E-TLS-HOST is for another host"),
    ],
)
def test_a_wrong_certificate_is_refused_for_what_is_wrong_with_it(
    serve: Callable[..., Api], authority: Authority, host: str, validity: Any, told: str
) -> None:
    api = serve(authority.issue("fleet", host, **validity))
    code, _, what = told.partition(" ")

    for error in errors(api.url, str(authority.file)):
        assert (error.code, what in error.what, f"127.0.0.1:{api.port}" in error.what) == (code, True, True)
        assert error.next


def test_an_unknown_authority_a_self_signed_certificate_and_no_tls_are_called_that(
    serve: Callable[..., Api], authority: Authority, tmp_path: Path, api: Api
) -> None:
    for url, code, told in (
        (serve(authority.issue("fleet", "127.0.0.1")).url, "E-TLS-AUTHORITY", "unknown authority"),
        (serve(Authority.self_signed(tmp_path, "127.0.0.1")).url, "E-TLS-AUTHORITY", "self-signed"),
        (api.url.replace("http://", "https://"), "E-TLS", "TLS"),
    ):
        for error in errors(url, ""):
            assert (error.code, told in error.what) == (code, True), error.what


def test_a_drone_knows_how_long_a_certificate_is_valid(serve: Callable[..., Api], authority: Authority) -> None:
    api = serve(authority.issue("fleet", "127.0.0.1", ends=3 * DAY))

    end = certificate_end(api.url, str(authority.file))

    assert expires_soon(end, datetime.now(UTC)).startswith("expires in 2 days")
    assert not expires_soon(end, end - WARN_BEFORE - MOMENT)


def test_a_file_without_certificates_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")

    with pytest.raises(Precondition, match=str(file)):
        ControlPlane("https://127.0.0.1:1", ca_file=str(file))


def test_a_replaced_certificate_is_served_without_a_restart(serve: Callable[..., Api], authority: Authority) -> None:
    api = serve(authority.issue("fleet", "127.0.0.1"))
    served = ssl.get_server_certificate(("127.0.0.1", api.port))

    authority.issue("fleet", "127.0.0.1")

    wait_until(lambda: ssl.get_server_certificate(("127.0.0.1", api.port)) != served)
    assert answers(api, authority)


def test_a_replacement_that_cannot_be_used_leaves_the_previous_certificate_in_use(
    serve: Callable[..., Api], authority: Authority
) -> None:
    pair = authority.issue("fleet", "127.0.0.1")
    api = serve(pair)

    pair.certificate.write_bytes(authority.issue("other", "127.0.0.1").certificate.read_bytes())

    wait_until(lambda: "the changed certificate cannot be used" in api.log.read_text())
    assert answers(api, authority)


def test_a_key_of_another_certificate_is_refused_at_the_start(authority: Authority) -> None:
    one, other = authority.issue("one", "127.0.0.1"), authority.issue("other", "127.0.0.1")

    with pytest.raises(Precondition) as refused:
        ServerCertificate(one.certificate, other.key)

    assert refused.value.why == "the key belongs to another certificate"
