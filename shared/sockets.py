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


class Pings:
    """Tells when a subscription has gone deaf: whoever is at its other end no longer answers pings.

    The kernel's probes do not notice that, where a proxy or a stopped server still holds the connection.
    """

    def __init__(self) -> None:
        self._since: float | None = None

    def unanswered(self, count: int, now: float) -> bool:
        """Given how many pings wait for an answer now: whether some have waited for too long."""
        if count == 0:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since > _UNANSWERED_MS / 1000 - _PROBES["TCP_KEEPIDLE"]
