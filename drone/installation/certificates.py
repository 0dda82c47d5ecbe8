"""The drone's check of the certificates of its servers: how long they are still valid."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from drone.installation.home import DroneConfig, DroneHome
from shared.errors import FleetError
from shared.terminal.doctor import OK, WARN, Check
from shared.tls import client_context, expires_soon

_PORTS = {"https": 443, "rediss": 6379}


def check_certificates(config: DroneConfig, home: DroneHome) -> Iterator[Check]:
    """A check for each server that is reached over TLS and presents a valid certificate.

    The checks of the servers themselves say what is wrong with an invalid one.
    """
    for what, url in (("server", config.server_url), ("broker", home.credentials().broker_url)):
        if not url.startswith(("https://", "rediss://")):
            continue
        try:
            end = certificate_end(url, config.ca_file)
        except (OSError, FleetError):
            continue
        yield _check(what, end)


def certificate_end(url: str, ca_file: str = "", *, seconds: float = 5.0) -> datetime:
    """When the certificate of the server at `url` expires.

    Raises OSError, of which ssl.SSLError is one, if there is no connection or its certificate is refused.
    """
    parts = urlsplit(url)
    port = parts.port or _PORTS[parts.scheme]
    with (
        socket.create_connection((parts.hostname, port), timeout=seconds) as plain,
        client_context(ca_file).wrap_socket(plain, server_hostname=parts.hostname) as encrypted,
    ):
        found = encrypted.getpeercert()
    assert found
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(found["notAfter"])), UTC)


def _check(what: str, end: datetime) -> Check:
    code, subject = f"D-{what.upper()}-CERT", f"{what}'s certificate"
    if told := expires_soon(end, datetime.now(UTC)):
        return Check(code, WARN, subject, told, f"renew it on the {what}; nothing has to be done here")
    return Check(code, OK, subject, f"valid until {end:%Y-%m-%d}")
