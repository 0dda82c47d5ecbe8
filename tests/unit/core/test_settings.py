"""Settings that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.core.settings import read_settings
from control_plane.core.trace_receiver import traces_url
from shared.errors import Invalid


@pytest.mark.parametrize("proxies", ["*", "caddy", "10.0.0.1,", "10.0.0.1/8", "127.0.0.1;::1"])
def test_a_trusted_proxy_is_an_address_or_a_network(tmp_path: Path, proxies: str) -> None:
    with pytest.raises(Invalid, match="FLEET_TRUSTED_PROXIES: ") as refusal:
        read_settings(database_url="sqlite://", broker_url="redis://x", blob_dir=tmp_path, trusted_proxies=proxies)
    assert refusal.value.code == "E-SETTINGS"


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("localhost:4318", "expected http://HOST:4318"),
        ("grpc://collector:4317", "expected http://HOST:4318"),
        ("http://", "expected http://HOST:4318"),
        ("http://collector:x", "expected http://HOST:4318"),
        ("http://collector:0", "expected http://HOST:4318"),
        ("http://collector/?a=b", "without \\? and #"),
        ("http://collector:4318/v1/traces", "omit /v1/traces"),
        ("http://me:sesame@collector:4318", "user or password"),
    ],
)
def test_an_endpoint_of_traces_is_the_address_of_a_receiver(tmp_path: Path, endpoint: str, why: str) -> None:
    with pytest.raises(Invalid, match=f"(?i)FLEET_OTLP_ENDPOINT: .*{why}") as refusal:
        read_settings(database_url="sqlite://", broker_url="redis://x", blob_dir=tmp_path, otlp_endpoint=endpoint)
    assert "sesame" not in refusal.value.what


@pytest.mark.parametrize("endpoint", ["http://collector:4318", "http://collector:4318/", "http://[::1]:4318"])
def test_spans_go_below_the_endpoint(endpoint: str) -> None:
    assert traces_url(endpoint) == f"{endpoint.rstrip('/')}/v1/traces"


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ("sesame", "number 1 is not name=value"),
        ("a=b,sesame", "number 2 is not name=value"),
        ("a b=sesame", "number 1 is not name=value"),
        ("a=sesame%0d%0ab: c", "number 1 is not name=value"),
        ("a=", "number 1 is not name=value"),
        ("a=b,", "number 2 is not name=value"),
        ("content-type=sesame", "number 1 names a header that cannot be set"),
    ],
)
def test_headers_of_the_receiver_are_names_and_values_which_an_error_never_shows(
    tmp_path: Path, headers: str, why: str
) -> None:
    given = {"database_url": "sqlite://", "broker_url": "redis://x", "blob_dir": tmp_path}
    with pytest.raises(Invalid, match=f"FLEET_OTLP_HEADERS: .*{why}") as refusal:
        read_settings(**given, otlp_endpoint="http://collector:4318", otlp_headers=headers)
    assert "sesame" not in refusal.value.what


def test_headers_require_a_receiver(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"FLEET_OTLP_HEADERS: .*requires fleet_otlp_endpoint"):
        read_settings(database_url="sqlite://", broker_url="redis://x", blob_dir=tmp_path, otlp_headers="a=b")


def test_an_empty_endpoint_turns_traces_off(tmp_path: Path) -> None:
    given = {"database_url": "sqlite://", "broker_url": "redis://x", "blob_dir": tmp_path}
    assert read_settings(**given, otlp_endpoint="", otlp_headers="").otlp_endpoint is None
