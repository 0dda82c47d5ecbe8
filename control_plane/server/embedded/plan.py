"""What `fleet up` will start, computed before anything runs: addresses, ports, passwords, environments."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from control_plane.core.certificates import ServerCertificate
from control_plane.core.flower_address import FLOWER_PATH
from control_plane.core.settings import public_url_problem
from control_plane.server.embedded.broker_tls import encrypting_server
from control_plane.server.embedded.data_dir import DataDir, Remembered
from control_plane.server.embedded.options import DEFAULT_PORT, UpOptions
from control_plane.server.embedded.ports import choose_port
from shared.errors import Invalid
from shared.tls import client_context, failed_handshake

LOOPBACK = "127.0.0.1"
ANY = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 - compared with, not bound to
"""All addresses of this machine, of IPv4 or IPv6, with the one at which it reaches itself."""
_OWN = {LOOPBACK, "::1", "localhost"}
"""Addresses that no other machine, and no network namespace, reaches."""
_TRUST = "fleet up --tls-ca FILE        with the certificate of its authority"


@dataclass(frozen=True)
class Plan:
    """All values that the parts need."""

    options: UpOptions
    chosen: Remembered
    bind: str
    local_url: str
    """How this machine reaches the API."""
    public_url: str
    """How browsers and other machines reach it."""
    public_host: str
    broker_program: Path | None = None
    """The server that encrypts the broker's connections; None: Valkey from its wheel, which cannot."""

    @property
    def local_broker_url(self) -> str:
        """How this machine reaches the broker, without user and password."""
        if self.broker_program:
            return self.public_broker_url
        return f"redis://{LOOPBACK}:{self.chosen.broker_port}/0"

    @property
    def broker_url(self) -> str:
        return with_login(self.local_broker_url, self.chosen.broker_password)

    @property
    def public_broker_url(self) -> str:
        scheme = "rediss" if self.broker_program else "redis"
        return f"{scheme}://{_in_url(self.public_host)}:{self.chosen.broker_port}/0"

    @property
    def flower_url(self) -> str | None:
        """Where browsers reach Flower: at the address of the pages, behind their log-in."""
        return f"{self.public_url}{FLOWER_PATH}" if self.options.flower else None

    @property
    def open_to_others(self) -> bool:
        return self.bind not in _OWN

    @property
    def encrypted(self) -> bool:
        return self.public_url.startswith("https://")

    def environment(self, data: DataDir) -> dict[str, str]:
        """The environment of `fleet serve` and `fleet flower`."""
        files = {
            "FLEET_TLS_CERT_FILE": self.options.tls_cert,
            "FLEET_TLS_KEY_FILE": self.options.tls_key,
            "FLEET_CA_FILE": self.options.tls_ca,
        }
        return {
            **{name: str(file) for name, file in files.items() if file is not None},
            "FLEET_DATABASE_URL": data.database_url,
            "FLEET_BROKER_URL": self.broker_url,
            "FLEET_MASTER_KEY_FILE": str(data.master_key),
            "FLEET_BLOB_DIR": str(data.blobs),
            "FLEET_HOST": self.bind,
            "FLEET_PORT": str(self.chosen.port),
            "FLEET_PUBLIC_URL": self.public_url,
            "FLEET_PUBLIC_BROKER_URL": self.public_broker_url,
            "FLEET_FLOWER_URL": "",
            "FLEET_FLOWER_UPSTREAM": f"http://{LOOPBACK}:{self.chosen.flower_port}" if self.options.flower else "",
            "FLEET_FLOWER_PASSWORD": self.chosen.flower_password,
            # The demo's model answers only with what its script says.
            **({"FLEET_SESSION_TITLES": "false"} if self.options.demo else {}),
        }


def make_plan(options: UpOptions, data: DataDir) -> Plan:
    """Choose ports and addresses, and remember them for the next time.

    Raises Conflict for a port that is taken, Invalid for addresses that cannot be used together.
    """
    bind = options.host or LOOPBACK
    if options.demo and bind != LOOPBACK:
        raise Invalid(
            f"--demo requires a fleet that listens only on {LOOPBACK}",
            code="E-UP-DEMO",
            why="the demo's repository is a directory of this machine, which drones elsewhere do not have",
            next="fleet up --demo    or, without the demo: fleet up --host …",
        )
    public_host = _public_host(options, bind)
    _check_certificate(options, public_host)
    last = data.remembered()
    chosen = replace(
        last,
        port=choose_port(bind, wanted=options.port, last=last.port, flag="--port"),
        # Registered drones know the broker's port, so it changes only if another program took it.
        broker_port=choose_port(bind, wanted=0, last=last.broker_port, flag="--port"),
        flower_port=choose_port(LOOPBACK, wanted=options.flower_port, last=last.flower_port, flag="--flower-port")
        if options.flower
        else last.flower_port,
        demo_port=choose_port(LOOPBACK, wanted=0, last=last.demo_port, flag="--port")
        if options.demo
        else last.demo_port,
    )
    # A certificate is for the public name or address, so that this machine uses it, too.
    local_host = _in_url(public_host if options.tls_cert else ANY.get(bind, bind))
    plan = Plan(
        options=options,
        chosen=chosen,
        bind=bind,
        local_url=f"{options.scheme}://{local_host}:{chosen.port}",
        public_url=(options.public_url or f"{options.scheme}://{_in_url(public_host)}:{chosen.port}").rstrip("/"),
        public_host=public_host,
        broker_program=_broker_program(options, bind),
    )
    data.remember(chosen)
    return plan


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _broker_program(options: UpOptions, bind: str) -> Path | None:
    if options.tls_files is None or bind == LOOPBACK:
        return None
    return encrypting_server(*options.tls_files)


def with_login(broker_url: str, password: str) -> str:
    """The broker's address with the control plane's user in it."""
    return broker_url.replace("://", f"://control:{password}@", 1)


def _public_host(options: UpOptions, bind: str) -> str:
    if options.public_url:
        if why := public_url_problem(options.public_url):
            raise Invalid(
                f"invalid public URL {options.public_url[:80]!r}",
                code="E-UP-PUBLIC-URL",
                why=why,
                next="fleet up --public-url https://fleet.example.org",
            )
        return urlsplit(options.public_url).hostname or ""
    if bind in ANY:
        raise Invalid(
            f"--host {bind} requires --public-url: other machines need an address of this machine",
            code="E-UP-PUBLIC-URL",
            next=f"fleet up --host {bind} --public-url {options.scheme}://ADDRESS:{options.port or DEFAULT_PORT}",
        )
    return bind


def _check_certificate(options: UpOptions, host: str) -> None:
    """Return if there is no certificate, or if clients that connect to `host` will accept it.

    Raises Invalid for options that do not fit together, Precondition for unusable files, and Unreachable for a
    certificate that has expired, is for another host, or comes from an authority that this machine does not know.
    """
    if options.tls_cert is None or options.tls_key is None:
        if options.tls_cert or options.tls_key or options.tls_ca:
            raise Invalid(
                "--tls-cert and --tls-key require each other, and --tls-ca requires both",
                code="E-UP-TLS",
                next="fleet up --tls-cert FILE --tls-key FILE",
            )
        return
    if (options.public_url or "https:").startswith("http:"):
        raise Invalid(
            f"--public-url {options.public_url} is not encrypted, but --tls-cert is given",
            code="E-UP-TLS",
            next=f"fleet up --public-url https://{host}:{options.port}",
        )
    certificate = ServerCertificate(options.tls_cert, options.tls_key)
    try:
        _shake_hands(certificate.context, client_context(options.ca_file), host)
    except ssl.SSLError as error:
        failed = failed_handshake(f"https://{host}", error, trust=_TRUST)
        assert failed is not None
        raise failed from error


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    """Connect both in memory; raises the client's SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in tuple(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
