"""Which addresses belong to the public internet, and which are inside a network."""

from __future__ import annotations

import ipaddress

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL = ipaddress.ip_network("2000::/3")
_TUNNELS = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))


def is_inside(ip: Ip) -> bool:
    """Whether this is anything but a public internet address; for an embedded IPv4 address, that address decides."""
    if isinstance(ip, ipaddress.IPv4Address):
        return not ip.is_global or ip.is_multicast
    if ip.ipv4_mapped is not None:
        return is_inside(ip.ipv4_mapped)
    if ip in _NAT64:
        return is_inside(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return ip not in _GLOBAL or not ip.is_global or any(ip in each for each in _TUNNELS)
