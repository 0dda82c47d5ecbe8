"""The proxy of the owner's network, if there is one: connections of commands go through it too."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

DEFAULT_PORT = 3128


@dataclass(frozen=True)
class OwnersProxy:
    """An HTTP proxy."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)
    """The value of the header `Proxy-Authorization`, which commands never see."""


def owners_proxy(environ: Mapping[str, str]) -> OwnersProxy | None:
    """The HTTP proxy that the drone's own environment names for https; None without one, and for other protocols."""
    url = next((environ[name] for name in ("https_proxy", "HTTPS_PROXY") if environ.get(name)), "")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not url or not host or parts.scheme != "http":
        return None
    return OwnersProxy(host, port or DEFAULT_PORT, _authorization(parts.username, parts.password))


def _authorization(user: str | None, password: str | None) -> str:
    if user is None:
        return ""
    word = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(word.encode()).decode()}"
