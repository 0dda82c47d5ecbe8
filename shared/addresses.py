"""Which addresses belong to the public internet, and which are inside a network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL = ipaddress.ip_network("2000::/3")
_PLATFORM = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
"""What clouds serve to their virtual machines, with secrets, at addresses that count as global: Azure's wire server,
and Oracle's metadata, which is among those for protocols (RFC 6890)."""
_TUNNELS = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))


def is_inside(ip: Ip) -> bool:
    """Whether this is anything but a public internet address; for an embedded IPv4 address, that address decides."""
    if isinstance(ip, ipaddress.IPv4Address):
        return not ip.is_global or ip.is_multicast or any(ip in each for each in _PLATFORM)
    if (embedded := embedded_ipv4(ip)) is not None:
        return is_inside(embedded)
    return ip not in _GLOBAL or not ip.is_global or any(ip in each for each in _TUNNELS)


def embedded_ipv4(ip: Ip) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a connection to this one leads to."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else ip.ipv4_mapped


def own_addresses() -> frozenset[Ip]:
    """The addresses of this machine's interfaces now, public ones too: what listens on them is inside."""
    import psutil

    families = {socket.AF_INET, socket.AF_INET6}
    found = (each for interface in psutil.net_if_addrs().values() for each in interface if each.family in families)
    return frozenset(ipaddress.ip_address(each.address.partition("%")[0]) for each in found)


def is_one_of(ip: Ip, addresses: Collection[Ip]) -> bool:
    """Whether a connection to this address leads to one of these."""
    return ip in addresses or embedded_ipv4(ip) in addresses
