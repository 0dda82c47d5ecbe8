"""Where webhooks may be sent: never to hosts inside this network, under any name."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from control_plane.contract.validation.checks import check_text
from shared.addresses import Ip, is_inside, is_one_of, own_addresses
from shared.errors import Invalid

MAX_URL = 2048
_PORTS = {"http": 80, "https": 443}
_INSIDE = "the address is inside this network"
_NEXT = "use a public address, or start the server with FLEET_WEBHOOK_PRIVATE=true"


class Unsent(Exception):
    """The message was not sent; the text says why."""


@dataclass(frozen=True)
class Target:
    """The parts of a receiver's address."""

    scheme: str
    host: str
    port: int
    path: str
    """Including the query."""

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def check_url(url: str, *, inside_allowed: bool) -> str:
    """Return a receiver's URL unchanged. Raises Invalid if no webhook may ever be sent there.

    A host name is resolved when a message is sent, not here: its addresses may change.
    """
    target = read_url(url)
    if inside_allowed:
        return url
    named = target.host.rstrip(".").lower()
    if named == "localhost" or named.endswith(".localhost") or any(is_inside(ip) for ip in _literal(target.host)):
        raise Invalid(f"webhooks are not sent to {target.host}", code="E-WEBHOOK-INSIDE", why=_INSIDE, next=_NEXT)
    return url


def read_url(url: str) -> Target:
    """The parts of the URL. Raises Invalid if it is not an http or https URL, without repeating a possible password."""
    check_text("the URL", url, limit=MAX_URL)
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise _invalid("it contains characters that must be percent-encoded, or a host that must be in punycode")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _invalid(str(error)[:80]) from None
    if parts.scheme not in _PORTS:
        raise _invalid("only http and https are supported")
    if "@" in parts.netloc:
        raise _invalid("it contains a user or password; receivers verify the signature instead")
    if not host or port == 0 or "%" in host:
        raise _invalid("its host is missing or invalid, or its port is invalid")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or _PORTS[parts.scheme], path)


def resolve(target: Target, *, inside_allowed: bool) -> list[str]:
    """The host's current addresses, all checked: connect to one of these and to nothing else.

    A name with addresses both inside and outside is rejected as a whole. Raises Unsent.
    """
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    # UnicodeError: a label of more than 63 characters.
    except (OSError, UnicodeError) as error:
        raise Unsent(f"{target.host} could not be resolved: {getattr(error, 'strerror', None) or error}") from error
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    machine = frozenset() if inside_allowed else own_addresses()
    parsed = map(ipaddress.ip_address, addresses)
    if not inside_allowed and any(is_inside(each) or is_one_of(each, machine) for each in parsed):
        raise Unsent(f"{target.host} resolves to an address inside this network, where webhooks are not sent; {_NEXT}")
    return addresses


def _literal(host: str) -> Iterator[Ip]:
    """The address that a host literally is, in any form that the system accepts: `2130706433`, `0x7f.1`."""
    try:
        yield ipaddress.ip_address(host)
    except ValueError:
        try:
            yield ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
        except OSError:
            return


def _invalid(why: str) -> Invalid:
    return Invalid("invalid webhook URL", code="E-WEBHOOK-URL", why=why, next="--url https://example.org/fleet")
