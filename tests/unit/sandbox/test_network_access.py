"""The rules of the network: which hosts, ports and addresses a command may be connected to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from drone.sandbox.network import NetworkAccess, Refusal

NAMES = {
    "pypi.org": ["151.101.0.223"],
    "six.example": ["2606:4700::1111"],
    "rebinding.example": ["93.184.216.34", "127.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "nat64.example": ["64:ff9b::a00:1"],
    "tunnel.example": ["2002:a00:1::"],
    "fleet.example": ["203.0.114.9"],
    "alias.example": ["203.0.114.9"],
    "scoped.example": ["fe80::1%eth0"],
    "git.example": ["10.0.0.5"],
    "a.git.example": ["10.0.0.6"],
}


def resolve(host: str, _port: int) -> Sequence[str]:
    """A resolver with a fixed answer for each name; an address is its own name."""
    if host in NAMES:
        return NAMES[host]
    if host.replace(".", "").isdigit() or ":" in host:
        return [host]
    raise OSError(-2, "Name or service not known")


def refused(access: NetworkAccess, host: str, port: int = 443) -> str:
    """Why a connection is refused; empty if it is not."""
    try:
        access.addresses(host, port, resolve)
    except Refusal as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("host", ["pypi.org", "six.example", "151.101.0.223"])
@pytest.mark.parametrize("port", [80, 443])
def test_the_public_web_can_be_reached_at_the_addresses_that_were_checked(host: str, port: int) -> None:
    assert NetworkAccess().addresses(host, port, resolve) == resolve(host, port)


@pytest.mark.parametrize(
    "host",
    [
        *("rebinding.example", "metadata.example", "mapped.example", "nat64.example", "tunnel.example"),
        *("scoped.example", "git.example", "127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "fe80::1", "fd00::1", "ff02::1"),
    ],
)
def test_an_address_inside_the_network_is_refused_under_any_name(host: str) -> None:
    assert "inside this network" in refused(NetworkAccess(), host)


@pytest.mark.parametrize("host", ["fleet.example", "alias.example", "203.0.114.9"])
def test_the_fleets_own_servers_are_refused_under_any_name(host: str) -> None:
    assert "the fleet itself" in refused(NetworkAccess(own=("fleet.example", "gone.example")), host)


@pytest.mark.parametrize("port", [22, 25, 53, 8080, 6379])
def test_other_ports_than_those_of_the_web_are_refused(port: int) -> None:
    assert f"port {port}" in refused(NetworkAccess(), "pypi.org", port)


def test_a_name_without_an_address_is_refused_with_the_reason() -> None:
    assert (
        refused(NetworkAccess(), "nowhere.example") == "nowhere.example cannot be resolved: Name or service not known"
    )


@pytest.mark.parametrize(
    ("entry", "host", "port", "allowed"),
    [
        ("git.example", "git.example", 443, True),
        ("Git.example.", "git.example", 443, True),
        ("git.example", "git.example", 22, False),
        ("git.example:22", "git.example", 22, True),
        ("git.example:22", "git.example", 443, False),
        ("*.git.example", "a.git.example", 443, True),
        ("*.git.example", "git.example", 443, False),
        ("git.example", "a.git.example", 443, False),
        ("10.0.0.5:3000", "10.0.0.5", 3000, True),
        ("10.0.0.5", "10.0.0.6", 443, False),
        ("[fd00::5]:3000", "fd00::5", 3000, True),
        ("fd00::5", "fd00::5", 443, True),
        ("*.example", "notexample", 443, False),
    ],
)
def test_the_owners_list_counts_for_addresses_inside_too(entry: str, host: str, port: int, *, allowed: bool) -> None:
    for kind in ("public", "hosts"):
        assert (refused(NetworkAccess(kind, (entry,)), host, port) == "") == allowed


def test_with_a_list_alone_nothing_else_is_reached() -> None:
    assert "not among the hosts" in refused(NetworkAccess("hosts", ("git.example",)), "pypi.org")
