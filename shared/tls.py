"""TLS between the parts of a fleet: which authorities are trusted, and what a failed handshake means."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from shared.errors import Precondition, Unreachable

WARN_BEFORE = timedelta(days=14)
_NOT_YET_VALID, _EXPIRED = 9, 10
_SELF_SIGNED = 18
_OTHER_HOST = {62, 64}
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_UNKNOWN_AUTHORITY = {_SELF_SIGNED, 19, 20, 21}


def client_context(ca_file: str = "") -> ssl.SSLContext:
    """A context that trusts the machine's authorities, or those of SSL_CERT_FILE, and the ones in `ca_file` too.

    Raises Precondition if the file cannot be used.
    """
    import httpx

    context = httpx.create_ssl_context()
    context.load_default_certs()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise unusable_ca(ca_file, error) from error
    return context


def unusable_ca(ca_file: str, error: Exception) -> Precondition:
    """The error for a file of authorities that cannot be read or has no certificate."""
    no_certificate = isinstance(error, ssl.SSLError)
    return Precondition(
        f"the authorities in {ca_file} cannot be used",
        code="E-CA-FILE",
        why="it contains no valid certificate in PEM form" if no_certificate else str(error),
        next=f"openssl x509 -in {ca_file} -noout -subject -enddate",
    )


def failed_handshake(url: str, error: BaseException, *, trust: str) -> Unreachable | None:
    """What was wrong with the other side's TLS, for an error of any client library; None if it is not about TLS.

    `trust` is the command that makes this side trust an authority of one's own.
    """
    found = next((each for each in _causes(error) if isinstance(each, ssl.SSLError)), None)
    if found is None:
        return None
    address = _address(url)
    if not isinstance(found, ssl.SSLCertVerificationError):
        return Unreachable(
            f"{address} does not answer in TLS",
            code="E-TLS",
            why=found.reason or str(found),
            next="check the scheme and the port of the address: is encryption on there?",
        )
    code, why = found.verify_code, found.verify_message
    if code == _EXPIRED:
        return Unreachable(
            f"the certificate of {address} has expired",
            code="E-TLS-EXPIRED",
            why=why,
            next="renew it there; if it was renewed, check the clock of this machine: timedatectl",
        )
    if code == _NOT_YET_VALID:
        return Unreachable(
            f"the certificate of {address} is not valid yet",
            code="E-TLS-EARLY",
            why=why,
            next="check the clocks of both machines: timedatectl",
        )
    if code in _OTHER_HOST:
        return Unreachable(
            f"the certificate of {address} is for another host",
            code="E-TLS-HOST",
            why=why,
            next="use the name that is in the certificate, or have one issued for this name",
        )
    if code in _UNKNOWN_AUTHORITY:
        kind = "is self-signed" if code == _SELF_SIGNED else "is from an unknown authority"
        return Unreachable(f"the certificate of {address} {kind}", code="E-TLS-AUTHORITY", why=why, next=trust)
    return Unreachable(f"the certificate of {address} is invalid", code="E-TLS", why=why, next="replace it there")


def expires_soon(end: datetime, now: datetime) -> str:
    """A sentence about a certificate that has expired or soon will; empty for any other."""
    if end <= now:
        return f"expired on {_day(end)}: no new connection succeeds"
    days = (end - now).days
    return "" if end - now > WARN_BEFORE else f"expires in {days} days, on {_day(end)}"


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d at %H:%M} UTC"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _address(url: str) -> str:
    """Host and port, without user and password."""
    return urlsplit(url).netloc.rpartition("@")[2]
