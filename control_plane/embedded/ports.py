"""Choosing ports: the requested one, the previous one, or any free one."""

from __future__ import annotations

import atexit
import socket
import sys

from shared.errors import Conflict


def choose_port(host: str, *, wanted: int, last: int, flag: str) -> int:
    """A port to listen on at `host`. `wanted` 0 means the previous one if it is free, else any.

    On Linux it is held until this process ends: the system gives it to nobody who asks for any port, such as another
    fleet that starts at the same moment. A server that is told its number, and sets SO_REUSEADDR, can listen on it.

    Raises Conflict if the wanted one is taken.
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
    """The number of the port that this process holds now, any free one for 0; 0 if somebody listens on it."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((host, port))
    except OSError:
        held.close()
        if not port:
            raise
        return 0
    number = int(held.getsockname()[1])
    if sys.platform == "linux":
        atexit.register(held.close)
    else:
        # Elsewhere, two sockets cannot share an address, whether or not they listen.
        held.close()
    return number
