"""The rules of the network: which host and port a run may be connected to, and at which addresses."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from shared.addresses import is_inside, is_one_of, own_addresses

AccessKind = Literal["none", "public", "hosts", "host"]
KINDS: tuple[AccessKind, ...] = get_args(AccessKind)
WEB_PORTS = (80, 443)
SHOWN_HOSTS = 20
MACHINES_OWN = "Network: everything that this machine can reach, also by ssh, UDP and on other ports."
Resolve = Callable[[str, int], Sequence[str]]
"""The current addresses of a host. Raises OSError or UnicodeError."""


class Refusal(Exception):
    """The network policy does not allow the connection; the text tells the model why."""


class UnknownHost(Refusal):
    """The name has no address that could be checked."""


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that the machine's resolver knows, the preferred one first."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(frozen=True)
class NetworkAccess:
    """What the drone's owner allows."""

    kind: AccessKind = "public"
    """none; hosts: only those listed; public: the web, and those listed; host: all that the machine can reach."""
    hosts: tuple[str, ...] = ()
    """Names or addresses, each with an optional port; `*.` stands for any subdomain. The owner's word counts for
    addresses inside the network too."""
    own: tuple[str, ...] = ()
    """The fleet's own servers: never reached, at any address, unless they are listed."""
    chosen: bool = False
    """Whether the owner wrote it down; a default that does not work here is replaced by `host`."""
    works: bool = False
    """It could be enforced here when the drone started: it is never replaced after that."""

    @property
    def is_routed(self) -> bool:
        """Whether commands have a network of their own, with a proxy as the only way out."""
        return self.kind in {"public", "hosts"}

    @property
    def is_replaceable(self) -> bool:
        """A default, which gives way to the machine's network where it cannot be enforced."""
        return self.is_routed and not self.chosen

    def reach(self, sandbox: str, missing: str) -> AccessKind:
        """What commands can reach in that kind of sandbox; `missing` is why they cannot have a network of their own."""
        is_open = sandbox == "none" or (missing and self.is_replaceable)
        return "host" if is_open else self.kind

    @property
    def rule(self) -> str:
        """What commands can reach, for the model: the same bytes as long as the policy is the same."""
        if self.kind == "host":
            return MACHINES_OWN
        others = "ssh, UDP and other ports do not lead out"
        if self.kind == "none":
            return f"Network: none; HTTP, {others}."
        listed = ", ".join(self.hosts[:SHOWN_HOSTS])
        if len(self.hosts) > SHOWN_HOSTS:
            listed += f" and {len(self.hosts) - SHOWN_HOSTS} more"
        if self.kind == "hosts":
            return f"Network: only {listed or 'no host'}, through the proxy in https_proxy; other hosts, {others}."
        also = f", and {listed}" if listed else ""
        return (
            f"Network: HTTP and HTTPS (ports 80 and 443) on the public web{also}, through the proxy in https_proxy; "
            f"{others}, so use https:// for git."
        )

    def addresses(self, host: str, port: int, resolve: Resolve = resolve) -> Sequence[str]:
        """Where to connect for a host and port: connect to one of these and to nothing else. Raises Refusal.

        A name is resolved here, once: an answer that changes between a check and the connection has no effect.
        """
        name = host.rstrip(".").lower()
        if self.kind == "none":
            raise Refusal("the drone's owner allows no network")
        listed = self.kind == "host" or any(_matches(entry.lower(), name, port) for entry in self.hosts)
        if not listed and self.kind == "hosts":
            raise Refusal(f"{host}:{port} is not among the hosts that the drone's owner allows")
        if not listed and port not in WEB_PORTS:
            raise Refusal(f"port {port} is not allowed, only HTTP on port 80 and HTTPS on port 443")
        try:
            found = resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise UnknownHost(f"{host} cannot be resolved: {getattr(error, 'strerror', None) or error}") from error
        if not listed:
            self._check(host, found, resolve)
        return found

    def _check(self, host: str, found: Sequence[str], resolve: Resolve) -> None:
        """A name with addresses both inside and outside is refused as a whole."""
        addresses = {ipaddress.ip_address(each.partition("%")[0]) for each in found}
        machine = own_addresses()
        if any(is_inside(each) or is_one_of(each, machine) for each in addresses):
            raise Refusal(f"{host} is inside this network, and only the public web is allowed")
        if addresses & set(_addresses_of(self.own, resolve)):
            raise Refusal(f"{host} belongs to the fleet itself, which is not allowed")


def _matches(entry: str, name: str, port: int) -> bool:
    """Whether an entry of the owner's list names this host, at this port or, without one, at those of the web."""
    host, colon, number = entry.rpartition(":")
    if not colon or not number.isdigit() or (entry.count(":") > 1 and not host.endswith("]")):
        host, number = entry, ""
    if not (port == int(number) if number else port in WEB_PORTS):
        return False
    host = host.strip("[]").rstrip(".")
    return name.endswith(host[1:]) and name != host[2:] if host.startswith("*.") else name == host


def _addresses_of(names: Iterable[str], resolve: Resolve) -> Iterable[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    for name in names:
        try:
            yield from (ipaddress.ip_address(each.partition("%")[0]) for each in resolve(name, WEB_PORTS[0]))
        except (OSError, UnicodeError):
            continue  # a name without an address cannot be reached under another one either
