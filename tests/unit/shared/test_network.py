"""This machine's own addresses, the proxies to others, and what is read from HTTP."""

from __future__ import annotations

import ssl
import urllib.request
from itertools import product

import httpx
import pytest

from shared import errors
from shared.loopback import bypass_proxies, http_options, is_loopback
from shared.problems import error_of, kind_of
from shared.proxies import Proxy, proxy_of
from shared.trace_context import TraceParent, valid_traceparent

PROXY = "http://proxy.example:3128"
LOCAL = "localhost,.localhost,127.0.0.1,::1"
# The environment, the endpoints, and NO_PROXY then.
EXCEPTED = [
    ({}, (), None),
    ({"HTTP_PROXY": ""}, ("http://127.0.0.1:1",), None),
    ({"FTP_PROXY": PROXY}, (), None),
    ({"NO_PROXY": "a.example"}, (), "a.example"),
    ({"HTTP_PROXY": PROXY}, (), LOCAL),
    ({"https_proxy": PROXY}, (), LOCAL),
    ({"ALL_PROXY": PROXY}, (), LOCAL),
    ({"all_proxy": "socks5://proxy.example:1080"}, (), LOCAL),
    ({"HTTP_PROXY": PROXY, "NO_PROXY": "a.example, 10.0.0.0/8 ,"}, (), f"a.example,10.0.0.0/8,{LOCAL}"),
    ({"HTTP_PROXY": PROXY, "NO_PROXY": "upper.example", "no_proxy": "small.example"}, (), f"small.example,{LOCAL}"),
    ({"HTTP_PROXY": PROXY, "NO_PROXY": "localhost,127.0.0.1"}, (), "localhost,127.0.0.1,.localhost,::1"),
    ({"HTTP_PROXY": PROXY, "NO_PROXY": "*"}, (), "*"),
    ({"HTTP_PROXY": PROXY, "no_proxy": "a.example,*"}, (), None),
    ({"HTTP_PROXY": PROXY}, ("http://127.0.0.2:1/v1", "https://models.example/v1", ""), f"{LOCAL},127.0.0.2"),
    ({"HTTP_PROXY": PROXY}, ("http://ollama.localhost:11434",), f"{LOCAL},ollama.localhost"),
    ({"HTTP_PROXY": PROXY}, ("http://[::1]:8000/v1", "http://LOCALHOST/v1", "http://10.0.0.1/v1"), LOCAL),
]


def test_where_there_is_a_proxy_it_is_not_for_this_machine() -> None:
    for given, urls, expected in EXCEPTED:
        environ = dict(given)
        bypass_proxies(environ, *urls)
        assert environ.get("NO_PROXY") == expected, (given, urls)


def test_libraries_see_it_and_still_use_the_proxy_for_other_machines() -> None:
    environ = {"http_proxy": PROXY}
    bypass_proxies(environ, "http://127.0.0.2:8000")
    no_proxy = {"no": environ["no_proxy"]}
    hosts = ["localhost", "127.0.0.1", "127.0.0.1:8399", "127.0.0.2", "a.localhost", "10.0.0.1", "models.example"]
    past = [host for host in hosts if urllib.request.proxy_bypass_environment(host, no_proxy)]  # type: ignore[attr-defined]
    assert past == hosts[:5]


def test_a_url_is_this_machines_by_its_name_or_address() -> None:
    local = ["http://localhost", "http://A.LOCALHOST:1", "http://127.9.9.9", "https://[::1]:8420/fleet"]
    others = ["http://127.0.0.1.example", "http://10.0.0.1", "http://[fe80::1]", "http://localhost.example", "", "x"]
    others += ["http://127.0.0.1@example.org"]
    assert [url for url in (*local, *others) if is_loopback(url)] == local


HTTP, HTTPS = "http://models.example:8080/v1", "https://models.example/v1"


def test_a_proxy_is_named_by_its_variable_and_its_host_without_a_login() -> None:
    cases: dict[tuple[str, str, str], Proxy | None] = {
        (HTTPS, "https_proxy", "http://ada:secret@proxy.example:3128"): Proxy("https_proxy", "proxy.example:3128"),
        (HTTPS, "HTTPS_PROXY", "http://proxy.example:3128/"): Proxy("HTTPS_PROXY", "proxy.example:3128"),
        (HTTPS, "HTTPS_PROXY", "proxy.example:3128"): Proxy("HTTPS_PROXY", "proxy.example:3128"),
        (HTTPS, "https_proxy", "https://[::1]:3128"): Proxy("https_proxy", "[::1]:3128"),
        (HTTPS, "ALL_PROXY", "socks5://proxy.example"): Proxy("ALL_PROXY", "proxy.example"),
        (HTTP, "all_proxy", "http://proxy.example"): Proxy("all_proxy", "proxy.example"),
        (HTTP, "HTTP_PROXY", "http://proxy.example"): Proxy("HTTP_PROXY", "proxy.example"),
        (HTTP, "https_proxy", "http://proxy.example"): None,
        (HTTPS, "HTTP_PROXY", "http://proxy.example"): None,
        ("ssh://git@models.example/x", "all_proxy", "http://proxy.example"): None,
        ("git@models.example:x", "all_proxy", "http://proxy.example"): None,
    }
    assert {case: proxy_of(case[0], {case[1]: case[2]}) for case in cases} == cases
    both = {"https_proxy": "http://small:1", "HTTPS_PROXY": "http://large:1", "all_proxy": "http://all:1"}
    assert str(proxy_of(HTTPS, both)) == "the proxy small:1 of https_proxy"
    login = Proxy("https_proxy", "h:1").advice(HTTPS)
    assert login == "on the drone: correct https_proxy, or export NO_PROXY=models.example, then drone start"


def test_the_exceptions_are_those_of_the_client_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared with httpx, which knows the proxies of its own client."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    urls = (HTTP, HTTPS, "https://api.models.example/v1", "http://10.0.0.7/v1", "https://other.test/v1")
    excepted = ("", "models.example", ".example", "*", "10.0.0.7", "other.test, 10.0.0.7", "example", "models")
    context = ssl.create_default_context()
    for url, no_proxy in product(urls, excepted):
        environ = {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:2", "NO_PROXY": no_proxy}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        with httpx.Client(verify=context) as client:
            used = client._transport_for_url(httpx.URL(url)) is not client._transport
        assert used == (proxy_of(url, environ) is not None), (url, no_proxy)


def test_only_plain_http_on_this_machine_goes_without_certificates() -> None:
    cases: list[tuple[str, bool, bool]] = [
        ("http://127.0.0.1:8420", False, False),
        ("https://127.0.0.1:8420", False, True),
        ("http://fleet.example.org", True, True),
        ("https://fleet.example.org", True, True),
    ]
    for url, proxies, certificates in cases:
        options = http_options(url)
        assert (options["trust_env"], bool(options["verify"])) == (proxies, certificates), url


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


def test_a_valid_traceparent_is_read_also_of_a_later_version_and_any_other_is_ignored() -> None:
    assert TraceParent.read(VALID) == TraceParent(bytes.fromhex(TRACE), bytes.fromhex(SPAN), sampled=True)
    flags = {"00": False, "01": True, "03": True, "fe": False}
    parents = {each: TraceParent.read(f"00-{TRACE}-{SPAN}-{each}") for each in flags}
    assert {each: parent.sampled for each, parent in parents.items() if parent} == flags
    kept = (VALID, f"cc-{TRACE}-{SPAN}-01", f"01-{TRACE}-{SPAN}-01-what-a-later-version-adds")
    ignored = (
        *("", "none", VALID.upper(), f"{VALID}-more", f"{VALID}\n", f" {VALID}", f"ff-{TRACE}-{SPAN}-01"),
        *(f"cc-{TRACE}-{SPAN}-01.more", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01"),
        *(f"00-{TRACE[1:]}-{SPAN}-01", f"00-{TRACE}-{SPAN}", f"0-{TRACE}-{SPAN}-01"),
    )
    found = {header: valid_traceparent(header) for header in (*kept, *ignored)}
    assert found == {**dict.fromkeys(kept, VALID), **dict.fromkeys(ignored, "")}


PROBLEM = {"code": "E-DRONE-404", "detail": "no drone has this name", "why": "it was removed", "next": "fleet drones"}


def test_the_status_decides_the_class_and_with_it_the_exit_code() -> None:
    cases = {401: errors.Unauthenticated, 403: errors.Forbidden, 404: errors.NotFound, 409: errors.Conflict}
    cases |= {412: errors.Precondition, 413: errors.TooLarge, 422: errors.Invalid, 429: errors.TooOften}
    cases |= {418: errors.Refused, 503: errors.FleetFault}
    for status, kind in cases.items():
        assert type(error_of(status, PROBLEM)) is kind, status
        assert kind_of(status) is kind, status
    error = error_of(404, PROBLEM)
    assert error is not None
    assert (error.code, error.what, error.why, error.next) == tuple(PROBLEM.values())
    others: list[object] = [None, [], "text", {}, {"code": 7}, {"detail": "no code"}]
    assert [other for other in others if error_of(404, other) is not None] == []
