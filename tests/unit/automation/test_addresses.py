"""Addresses of webhooks and repositories in every spelling, and the forms of pull requests."""

from __future__ import annotations

import ipaddress

import pytest

from control_plane.automation import webhook_addresses
from control_plane.automation.webhook_addresses import Target, Unsent, check_url, read_url, resolve
from drone.services.pull_request.address import address_of
from drone.services.pull_request.api import refusal_of
from drone.services.pull_request.template import MAX_BODY, filled
from shared.addresses import is_inside, own_addresses
from shared.errors import Invalid, Refused

INSIDE = [
    *("0.0.0.0", "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "ff02::1", "ff0e::1"),
    *("fec0::1", "100::1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1"),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1"),
    *("168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110", "100.100.100.200", "192.0.0.192"),
]
OUTSIDE = [
    *("1.1.1.1", "8.8.8.8", "140.82.112.3", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"),
    *("::ffff:8.8.8.8", "64:ff9b::808:808", "168.63.129.15", "168.63.129.17"),
]


def test_an_address_inside_the_network_is_known_in_each_of_its_forms() -> None:
    found = {address: is_inside(ipaddress.ip_address(address)) for address in (*INSIDE, *OUTSIDE)}
    assert found == {**dict.fromkeys(INSIDE, True), **dict.fromkeys(OUTSIDE, False)}


def test_an_address_that_is_written_as_one_inside_is_refused_at_once() -> None:
    hosts = [
        *("localhost", "LOCALHOST", "localhost.", "app.localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001"),
        *("0177.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "[fd00:ec2::254]", "10.1", "0"),
    ]
    for host in hosts:
        with pytest.raises(Invalid) as refusal:
            check_url(f"http://{host}:8080/x", inside_allowed=False)
        assert (host, refusal.value.code) == (host, "E-WEBHOOK-INSIDE")
    assert check_url("http://127.0.0.1:1/x", inside_allowed=True) == "http://127.0.0.1:1/x"
    parts = {
        "https://example.org": ("example.org", "/"),
        "https://example.org:443/a?b=c#d": ("example.org", "/a?b=c"),
        "http://[2606:4700::1]:8080/x": ("[2606:4700::1]:8080", "/x"),
    }
    assert {url: (read_url(url).authority, read_url(url).path) for url in parts} == parts


def test_what_is_no_address_for_a_webhook_is_refused_without_a_password_being_repeated() -> None:
    urls = [
        *("", "x", "ftp://example.org/", "file:///etc/passwd", "gopher://example.org:70/", "//example.org/x"),
        *("http://", "https:///x", "http://user@example.org/", "https://user:hunter2@example.org/"),
        *("http://@example.org/", "http://example.org:0/", "http://example.org:99999/", "http://example.org:x/"),
        *("http://exämple.org/", "http://example.org/ x", "http://example.org/\r\nHost: x", "http://exa\\mple.org/"),
        *("http://[::1", "http://[fe80::1%25lo]/", "\x00", "http://" + "x" * 3000),
    ]
    for url in urls:
        with pytest.raises(Refused) as refusal:
            check_url(url, inside_allowed=True)
        assert "hunter2" not in f"{refusal.value.what} {refusal.value.why} {refusal.value.next}"


def test_no_webhook_is_sent_to_the_machines_own_public_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = frozenset(map(ipaddress.ip_address, ("203.0.114.7", "2606:4700::7")))
    monkeypatch.setattr(webhook_addresses, "own_addresses", lambda: machine)
    own = ("203.0.114.7", "::ffff:203.0.114.7", "64:ff9b::cb00:7207", "2606:4700::7", "3405804039", "0xcb007207")
    inside = ("127.0.0.1", "localhost", "2130706433", "0.0.0.0", "::1", "::ffff:127.0.0.1")
    others = ("203.0.114.8", "2606:4700::8")
    sent = {}
    for host in (*own, *inside, *others):
        target = Target("http", host, 80, "/")
        try:
            sent[host] = bool(resolve(target, inside_allowed=False))
        except Unsent:
            sent[host] = False
    assert sent == {**dict.fromkeys((*own, *inside), False), **dict.fromkeys(others, True)}
    assert resolve(Target("http", own[0], 80, "/"), inside_allowed=True) == [own[0]]


def test_the_machines_addresses_are_those_of_its_interfaces() -> None:
    assert ipaddress.ip_address("127.0.0.1") in own_addresses()


BODY = "What was done.\n\n## Verification\n\nNone.\n\nOrder: a\n\nFleet-Order: a\n"


def test_a_git_url_names_a_host_and_a_repository() -> None:
    expected = {
        "https://github.com/o/r.git": ("github.com", "https://github.com", "o/r"),
        "http://127.0.0.1:3000/o/r": ("127.0.0.1", "http://127.0.0.1:3000", "o/r"),
        "git@github.com:o/r.git": ("github.com", "https://github.com", "o/r"),
        "ssh://git@git.example:2222/g/s/r.git": ("git.example", "https://git.example", "g/s/r"),
        "ssh://git@ssh.github.com:443/o/r.git": ("github.com", "https://github.com", "o/r"),
    }
    found = {url: address_of(url) for url in expected}
    assert {url: each and (each.host, each.origin, each.path) for url, each in found.items()} == expected
    none = ("file:///srv/r.git", "/srv/r.git", "https://host/r", "ext::sh -c id", "https://h/../r")
    assert {url: address_of(url) for url in none} == dict.fromkeys(none)


def test_a_form_has_the_summary_under_its_heading_or_in_front_and_is_cut_before_its_trailers() -> None:
    assert filled("", BODY) == BODY
    expected = "What was done.\n\n- [ ] Signed\n\n## Verification\n\nNone.\n\nOrder: a\n\nFleet-Order: a\n"
    assert filled("- [ ] Signed\n", BODY) == expected
    form = "```\n# Summary\n```\n<!--\n# Description\n-->\n### Summary of it\nrest\n"
    assert "### Summary of it\n\nWhat was done.\n\nrest" in filled(form, BODY)
    long = filled("## Description\n" + "x" * 5000, "y" * 100_000 + "\n\n## Verification\n\nNone.\n\nFleet-Order: a\n")
    assert (len(long) <= MAX_BODY + 1, long.endswith("Fleet-Order: a\n"), "… (cut)" in long) == (True, True, True)


def test_a_hosts_refusal_is_told_in_its_words_whatever_form_they_have() -> None:
    assert "(HTTP 422): is taken; is odd" in str(refusal_of("h", 422, {"message": {"base": ["is taken", "is odd"]}}))
    assert "(HTTP 500)" in str(refusal_of("h", 500, None))
