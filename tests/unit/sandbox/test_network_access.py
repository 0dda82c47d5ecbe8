"""The rules of the network: which hosts, ports and addresses a command may be connected to."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Sequence

import pytest

from drone.sandbox.network import NetworkAccess, Refusal
from drone.sandbox.network import access as access_rules

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
    "azure.example": ["168.63.129.16"],
    "machine.example": ["203.0.114.7"],
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


INSIDE = (
    *("rebinding.example", "metadata.example", "mapped.example", "nat64.example", "tunnel.example"),
    *("azure.example", "168.63.129.16", "::ffff:168.63.129.16"),
    *("scoped.example", "git.example", "127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "fe80::1", "fd00::1", "ff02::1"),
)


def test_the_public_web_can_be_reached_at_the_addresses_that_were_checked_and_at_no_other_port() -> None:
    for host, port in itertools.product(("pypi.org", "six.example", "151.101.0.223"), (80, 443)):
        assert NetworkAccess().addresses(host, port, resolve) == resolve(host, port)
    for port in (22, 25, 53, 8080, 6379):
        assert f"port {port}" in refused(NetworkAccess(), "pypi.org", port)
    assert refused(NetworkAccess(), "nowhere.example").startswith("nowhere.example cannot be resolved")


def test_an_address_inside_the_network_is_refused_under_any_name() -> None:
    assert [host for host in INSIDE if "inside this network" not in refused(NetworkAccess(), host)] == []


def test_the_machines_own_public_addresses_are_refused_under_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = frozenset(map(ipaddress.ip_address, ("203.0.114.7", "2606:4700::7")))
    monkeypatch.setattr(access_rules, "own_addresses", lambda: machine)
    names = ("machine.example", "203.0.114.7", "2606:4700::7", "::ffff:203.0.114.7", "64:ff9b::cb00:7207")
    assert [host for host in names if "inside this network" not in refused(NetworkAccess(), host)] == []
    assert refused(NetworkAccess("public", ("machine.example",)), "machine.example") == ""
    assert refused(NetworkAccess(), "203.0.114.8") == ""


def test_the_fleets_own_servers_are_refused_under_any_name() -> None:
    access = NetworkAccess(own=("fleet.example", "gone.example"))
    names = ("fleet.example", "alias.example", "203.0.114.9")
    assert [host for host in names if "the fleet itself" not in refused(access, host)] == []


LISTED = [
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
]
"""An entry of the owner's list, a host, a port, and whether it can be reached."""


def test_the_owners_list_counts_for_addresses_inside_too() -> None:
    for kind in ("public", "hosts"):
        reached = [(*each[:3], refused(NetworkAccess(kind, each[:1]), each[1], each[2]) == "") for each in LISTED]
        assert reached == LISTED, kind
    assert "not among the hosts" in refused(NetworkAccess("hosts", ("git.example",)), "pypi.org")


@pytest.mark.parametrize(
    ("access", "sandbox", "missing", "reach"),
    [
        (NetworkAccess(), "bwrap", "", "public"),
        (NetworkAccess(), "bwrap", "nsenter is not installed", "host"),
        (NetworkAccess(), "docker", "", "public"),
        (NetworkAccess("hosts", chosen=True), "bwrap", "nsenter is not installed", "hosts"),
        (NetworkAccess("none", chosen=True), "none", "", "host"),
    ],
)
def test_what_commands_reach_depends_on_what_can_be_enforced(
    access: NetworkAccess, sandbox: str, missing: str, reach: str
) -> None:
    assert access.reach(sandbox, missing) == reach
