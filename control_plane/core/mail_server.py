"""The mail server as FLEET_SMTP_URL names it, and the sender of FLEET_MAIL_FROM."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import parseaddr
from typing import Literal, cast, get_args
from urllib.parse import parse_qs, unquote, urlsplit

MailEncryption = Literal["starttls", "tls", "none"]
_PORTS: dict[MailEncryption, int] = {"starttls": 587, "tls": 465, "none": 25}


@dataclass(frozen=True)
class MailServer:
    """Where e-mail is handed over."""

    host: str
    port: int
    encryption: MailEncryption
    """starttls: required, not only tried; tls: from the first byte; none: for servers on the same machine."""
    user: str = ""
    password: str = field(default="", repr=False)


def read_mail_url(url: str) -> MailServer:
    """The server of `smtp://user:password@host:587?tls=starttls`, or of `smtps://…`.

    `tls` is starttls (the default), tls (the default of smtps) or none. Raises ValueError, which never repeats the
    password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("expected smtp://USER:PASSWORD@HOST:PORT") from None
    if parts.scheme not in {"smtp", "smtps"} or not host or parts.path not in {"", "/"}:
        raise ValueError("expected smtp://USER:PASSWORD@HOST:PORT or smtps://…")
    given = parse_qs(parts.query).get("tls", ["tls" if parts.scheme == "smtps" else "starttls"])[-1]
    if given not in get_args(MailEncryption) or set(parse_qs(parts.query)) - {"tls"}:
        raise ValueError("after ?, only tls=starttls, tls=tls or tls=none is supported")
    encryption = cast("MailEncryption", given)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(host, port or _PORTS[encryption], encryption, user, password)


def is_sender(text: str) -> bool:
    """Whether this is one e-mail address, with or without a name, that fits into a header."""
    address = parseaddr(text)[1]
    name, _, domain = address.partition("@")
    is_host = domain == "localhost" or "." in domain.strip(".")
    return text.isprintable() and bool(name) and is_host and "," not in text and " " not in address
