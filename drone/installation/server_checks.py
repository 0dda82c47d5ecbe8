"""The drone's checks of its servers: whether they answer, their clock, and how long their certificates are valid."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from drone.installation.client import TRUST, ControlPlane
from drone.installation.home import DroneConfig, DroneHome
from shared.errors import FleetError
from shared.loopback import is_loopback
from shared.sockets import redis_tls
from shared.terminal.doctor import FAIL, OK, WARN, Check
from shared.tls import client_context, expires_soon, failed_handshake

CLOCK_WARN_S, CLOCK_FAIL_S = 5, 60
REGISTER = "drone register --url URL --token TOKEN        (the token: fleet token add)"
_PORTS = {"https": 443, "rediss": 6379}


def check_server(config: DroneConfig) -> Iterator[Check]:
    """Whether the control plane answers, over a safe connection, and with the same time."""
    before = datetime.now(UTC)
    try:
        with ControlPlane(config.server_url, ca_file=config.ca_file) as server:
            there = server.server_time()
    except FleetError as error:
        yield Check("D-SERVER", FAIL, "server", f"{error.what}: {error.why}", error.next)
        return
    here = before + (datetime.now(UTC) - before) / 2
    plain = config.server_url.startswith("http://") and not is_loopback(config.server_url)
    note = f"{config.server_url} answers{', but the connection is not encrypted' if plain else ''}"
    yield Check(
        "D-SERVER",
        WARN if plain else OK,
        "server",
        note,
        "serve the control plane over https, then register again with that URL",
    )
    if there:
        yield check_clock(here, there)


def check_clock(here: datetime, there: datetime) -> Check:
    """Compare the two clocks; the server's has whole seconds only."""
    ahead = round((here - there).total_seconds())
    state = FAIL if abs(ahead) > CLOCK_FAIL_S else WARN if abs(ahead) > CLOCK_WARN_S else OK
    found = (
        f"{abs(ahead)} s {'ahead of' if ahead > 0 else 'behind'} the server's"
        if state is not OK
        else "same as the server's"
    )
    return Check("D-CLOCK", state, "clock", found, "sudo timedatectl set-ntp true")


def check_broker(home: DroneHome) -> Check:
    """Log in to the broker as this drone's own user."""
    import redis

    url, ca_file = home.credentials().broker_url, home.config().ca_file
    address = url.rpartition("@")[2].partition("/")[0]
    try:
        with redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5, **redis_tls(url, ca_file)) as client:
            about = client.info("server")
    except redis.AuthenticationError:
        return Check("D-BROKER", FAIL, "broker", f"{address} no longer accepts this drone's user", REGISTER)
    except (redis.RedisError, OSError) as error:
        if failed := failed_handshake(url, error, trust=TRUST):
            return Check("D-BROKER", FAIL, "broker", f"{failed.what}: {failed.why}", failed.next)
        fix = "check that the broker is running and that its port is reachable from this machine"
        return Check("D-BROKER", FAIL, "broker", f"no answer at {address}: {error}", fix)
    name = about.get("server_name", "redis")
    number = about.get("valkey_version") or about.get("redis_version", "?")
    found = f"{name} {number} at {address}"
    if urlsplit(url).username != home.config().drone_id:
        shared = (
            "logged in as all drones do: each can delay, repeat and delete the messages of others; contents are sealed"
        )
        fix = "the fleet's admin can end that: docs/security.md, On the broker"
        return Check("D-BROKER", WARN, "broker", f"{found}, {shared}", fix)
    return Check("D-BROKER", OK, "broker", f"{found}, logged in as this drone")


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
        yield _certificate(what, end)


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


def _certificate(what: str, end: datetime) -> Check:
    code, subject = f"D-{what.upper()}-CERT", f"{what}'s certificate"
    if told := expires_soon(end, datetime.now(UTC)):
        return Check(code, WARN, subject, told, f"renew it on the {what}; nothing has to be done here")
    return Check(code, OK, subject, f"valid until {end:%Y-%m-%d}")
