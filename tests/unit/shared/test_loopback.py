"""Which URLs are of this machine, and how they are asked."""

from __future__ import annotations

import pytest

from shared.loopback import http_options, is_loopback


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8420", True),
        ("http://localhost", True),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://127.0.0.1@example.org", False),
        ("http://10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback_is_told_by_the_host_alone(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


@pytest.mark.parametrize(
    ("url", "proxies", "certificates"),
    [
        ("http://127.0.0.1:8420", False, False),
        ("https://127.0.0.1:8420", False, True),
        ("http://fleet.example.org", True, True),
        ("https://fleet.example.org", True, True),
    ],
)
def test_only_plain_http_on_this_machine_goes_without_certificates(url: str, proxies: bool, certificates: bool) -> None:
    options = http_options(url)
    assert (options["trust_env"], bool(options["verify"])) == (proxies, certificates)
