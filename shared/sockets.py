"""Connections to the broker, the same on both sides: when a silent one counts as broken, and how TLS is checked."""

from __future__ import annotations

import socket
import ssl
from typing import Any

_PROBES = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 4, "TCP_KEEPCNT": 3}
_UNANSWERED_MS = 20_000


def keepalive_options() -> dict[int, int]:
    """TCP options, by number, that end a connection about 20 s after its peer stopped responding.

    A cut cable, a sleeping machine or a firewall that dropped the connection does not report it: without these options,
    a subscription would wait for hours, and an already written command for a quarter of an hour.
    """
    options = {int(getattr(socket, name)): value for name, value in _PROBES.items() if hasattr(socket, name)}
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Probes are not sent while written data is unacknowledged; this option limits that wait, too.
        options[socket.TCP_USER_TIMEOUT] = _UNANSWERED_MS
    return options


def celery_tls(broker_url: str, ca_file: str = "") -> dict[str, Any] | None:
    """Celery's setting `broker_use_ssl`: over TLS, the broker's certificate must be valid for its host.

    For `rediss://` alone, kombu accepts every certificate, and a transport of our own would not use TLS at all.
    """
    if not broker_url.startswith("rediss://"):
        return None
    return {"ssl_cert_reqs": ssl.CERT_REQUIRED, **redis_tls(broker_url, ca_file)}


def redis_tls(broker_url: str, ca_file: str = "") -> dict[str, Any]:
    """Options of redis-py for `ca_file`, the authorities to trust besides the machine's."""
    return {"ssl_ca_certs": ca_file} if ca_file and broker_url.startswith("rediss://") else {}


class Pings:
    """Detects a dead subscription: the other end no longer answers pings.

    The kernel's probes do not detect this if a proxy or a stopped server still holds the connection.
    """

    def __init__(self) -> None:
        self._since: float | None = None

    def unanswered(self, count: int, now: float) -> bool:
        """Whether pings have been unanswered for too long, given that `count` are unanswered now."""
        if count == 0:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since > _UNANSWERED_MS / 1000 - _PROBES["TCP_KEEPIDLE"]
