"""The certificate of `fleet up`, tried before anything is started."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from control_plane.core.certificates import ServerCertificate
from shared.errors import Invalid
from shared.tls import client_context, failed_handshake

if TYPE_CHECKING:
    from control_plane.embedded.options import UpOptions

TRUST = "fleet up --tls-ca FILE        with the certificate of its authority"


def check_certificate(options: UpOptions, host: str) -> None:
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
        failed = failed_handshake(f"https://{host}", error, trust=TRUST)
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
