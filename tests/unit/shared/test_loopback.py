"""Which URLs are of this machine, and how they are asked."""

from __future__ import annotations

from shared.loopback import http_options, is_loopback


def test_loopback_is_told_by_the_host_alone() -> None:
    cases: dict[str, bool] = {
        "http://127.0.0.1:1": True,
        "http://127.9.9.9": True,
        "http://[::1]:8420": True,
        "http://localhost": True,
        "http://localhost.example.org": False,
        "http://127.0.0.1.example.org": False,
        "http://127.0.0.1@example.org": False,
        "http://10.0.0.1": False,
        "": False,
    }
    assert {url: is_loopback(url) for url in cases} == cases


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
