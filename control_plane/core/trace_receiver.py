"""Where traces are sent, as FLEET_OTLP_ENDPOINT and FLEET_OTLP_HEADERS name it."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

CONTENT_TYPE = "application/x-protobuf"
TRACES = "/v1/traces"
"""What the standard appends to the endpoint for this signal."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_OURS = frozenset({"connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding"})


def traces_url(endpoint: str) -> str:
    """The address that spans are sent to. Raises ValueError, which never repeats a password."""
    expected = "expected http://HOST:4318 or https://HOST/PATH, the address of a receiver of OTLP over HTTP"
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(expected) from None
    if parts.scheme not in {"http", "https"} or not host or port == 0 or not endpoint.isascii() or " " in endpoint:
        raise ValueError(expected)
    if "@" in parts.netloc:
        raise ValueError("it contains a user or password; send credentials with FLEET_OTLP_HEADERS")
    if parts.query or parts.fragment:
        raise ValueError(f"{expected}, without ? and #")
    if parts.path.rstrip("/").endswith(TRACES):
        raise ValueError(f"omit {TRACES}, which is appended")
    return endpoint.rstrip("/") + TRACES


def receiver_headers(text: str) -> dict[str, str]:
    """The headers of `name=value,name=value`; values may be percent-encoded. Raises ValueError, without the values."""
    found: dict[str, str] = {}
    for number, pair in enumerate(text.split(",") if text.strip() else (), 1):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(unquote(value)):
            raise ValueError(f"number {number} is not NAME=VALUE; expected NAME=VALUE,NAME=VALUE, percent-encoded")
        if name.lower() in _OURS:
            raise ValueError(f"number {number} names a header that cannot be set")
        found[name] = unquote(value)
    return found
