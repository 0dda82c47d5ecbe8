"""When a connection over which nothing comes counts as broken: the same on both sides."""

from __future__ import annotations

import socket

_PROBES = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 4, "TCP_KEEPCNT": 3}
_UNANSWERED_MS = 20_000


def keepalive_options() -> dict[int, int]:
    """TCP options, by number, that end a connection about 20 s after its peer fell silent.

    A cut cable, a sleeping machine or a firewall that forgot the connection send no word of it: without these a
    subscription would wait for hours, and a command that was written for a quarter of an hour.
    """
    options = {int(getattr(socket, name)): value for name, value in _PROBES.items() if hasattr(socket, name)}
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # The probes are not sent while something that was written is not acknowledged; this bounds that, too.
        options[socket.TCP_USER_TIMEOUT] = _UNANSWERED_MS
    return options
