"""Choosing ports: the requested one, the previous one, or any free one."""

from __future__ import annotations

import socket

from shared.errors import Conflict


def choose_port(host: str, *, wanted: int, last: int, flag: str) -> int:
    """A port to listen on at `host`. `wanted` 0 means the previous one if it is free, else any.

    Raises Conflict if the wanted one is taken.
    """
    if wanted:
        if not is_free(host, wanted):
            raise Conflict(
                f"port {wanted} on {host} is already in use",
                code="E-UP-PORT",
                next=f"fleet up {flag} 0 (any free port), or stop the other program",
            )
        return wanted
    return last if last and is_free(host, last) else any_free(host)


def is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def any_free(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
