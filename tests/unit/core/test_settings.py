"""Settings that are refused, without a secret in the refusal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from control_plane.core.settings import KEPT, read_settings
from control_plane.core.trace_receiver import traces_url
from shared.errors import Invalid
from tests.support.documents import ROOT

GIVEN: dict[str, Any] = {"database_url": "sqlite://", "broker_url": "redis://x", "blob_dir": Path("/x")}
RECEIVER = "http://collector:4318"


def test_what_is_no_proxy_no_receiver_of_traces_and_no_header_is_refused() -> None:
    proxies = ("*", "caddy", "10.0.0.1,", "10.0.0.1/8", "127.0.0.1;::1")
    endpoints = (
        *("localhost:4318", "grpc://collector:4317", "http://", "http://collector:x", "http://collector:0"),
        *("http://collector/?a=b", "http://collector:4318/v1/traces", "http://me:sesame@collector:4318"),
    )
    headers = ("sesame", "a=b,sesame", "a b=sesame", "a=sesame%0d%0ab: c", "a=", "a=b,", "content-type=sesame")
    cases: list[tuple[str, dict[str, str]]] = [
        *(("FLEET_TRUSTED_PROXIES", {"trusted_proxies": each}) for each in proxies),
        *(("FLEET_OTLP_ENDPOINT", {"otlp_endpoint": each}) for each in endpoints),
        *(("FLEET_OTLP_HEADERS", {"otlp_endpoint": RECEIVER, "otlp_headers": each}) for each in headers),
        ("FLEET_OTLP_HEADERS", {"otlp_headers": "a=b"}),
    ]
    for name, fields in cases:
        with pytest.raises(Invalid, match=f"(?i){name}: ") as refusal:
            read_settings(**GIVEN, **fields)
        assert (fields, refusal.value.code) == (fields, "E-SETTINGS")
        assert "sesame" not in refusal.value.what


def test_spans_go_below_the_endpoint_and_an_empty_one_turns_them_off() -> None:
    for endpoint in (RECEIVER, f"{RECEIVER}/", "http://[::1]:4318"):
        assert traces_url(endpoint) == f"{endpoint.rstrip('/')}/v1/traces"
    assert read_settings(**GIVEN, otlp_endpoint="", otlp_headers="").otlp_endpoint is None


def test_a_retention_that_would_remove_everything_is_refused_and_unlimited_keeps_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documented = re.findall(r"\| `FLEET_(\w+)` \|", (ROOT / "docs/retention.md").read_text())
    assert sorted(documented) == sorted(map(str.upper, KEPT))
    refused = [*((KEPT[0], given) for given in ("-1", "0.5", "forever", "1e3")), *((name, "0") for name in KEPT)]
    for name, given in refused:
        variable = f"FLEET_{name.upper()}"
        with monkeypatch.context() as patch:
            patch.setenv(variable, given)
            with pytest.raises(Invalid, match=f"{variable}: "):
                read_settings(**GIVEN)
    for given, kept in (("", None), ("unlimited", None), ("1", 1)):
        for name in KEPT:
            monkeypatch.setenv(f"FLEET_{name.upper()}", given)
        settings = read_settings(**GIVEN)
        assert {name: getattr(settings, name) for name in KEPT} == dict.fromkeys(KEPT, kept)
