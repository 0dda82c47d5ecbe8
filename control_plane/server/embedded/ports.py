"""Choosing ports: the requested one, the previous one, or any free one."""

from __future__ import annotations

import atexit
import socket
import sys
from errno import EADDRINUSE

from shared.errors import Conflict, Invalid


def choose_port(host: str, *, wanted: int, last: int, flag: str) -> int:
    """A port to listen on at `host`. `wanted` 0 means the previous one if it is free, else any.

    On Linux it is held until this process ends: the system gives it to nobody who asks for any port, such as another
    fleet that starts at the same moment. A server that is told its number, and sets SO_REUSEADDR, can listen on it.

    Raises Conflict if the wanted one is taken, Invalid if this machine has no such address.
    """
    if wanted:
        if not hold_port(host, wanted):
            raise Conflict(
                f"port {wanted} on {host} is already in use",
                code="E-UP-PORT",
                next=f"fleet up {flag} 0 (any free port), or stop the other program",
            )
        return wanted
    return (hold_port(host, last) if last else 0) or hold_port(host, 0)


def hold_port(host: str, port: int) -> int:
    """The number of the port that this process holds now, any free one for 0; 0 if somebody listens on it.

    Raises Invalid if this machine has no such address.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _no_address(host, port, error) from error
    # The server listens on all addresses of a name; one of IPv4, if it has any, stands for them.
    family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    held = socket.socket(family)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as the server's own socket
    try:
        held.bind(address)
    except OSError as error:
        held.close()
        if port and error.errno == EADDRINUSE:
            return 0
        raise _no_address(host, port, error) from error
    number = int(held.getsockname()[1])
    if sys.platform == "linux":
        atexit.register(held.close)
    else:
        # Elsewhere, two sockets cannot share an address, whether or not they listen.
        held.close()
    return number


def _no_address(host: str, port: int, error: OSError) -> Invalid:
    return Invalid(
        f"this machine cannot listen on {host}, port {port or 'any'}",
        code="E-UP-HOST",
        why=error.strerror or str(error),
        next="fleet up --host ADDRESS        an address of this machine (ip address), and a port from 1024 on",
    )
