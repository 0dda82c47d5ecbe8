"""URLs of this machine itself: how to detect them, and client options for them."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from shared.tls import client_context


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine, by its name or address; there is no DNS lookup."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_options(url: str, ca_file: str = "") -> dict[str, Any]:
    """Return options of an httpx client for `url`: `trust_env` and `verify`.

    A proxy from the environment cannot reach this machine's loopback, and without encryption, the certificates of all
    authorities need not be loaded, which takes 30 ms. `ca_file`: authorities to trust besides the machine's. Raises
    Precondition if it cannot be used.
    """
    local = is_loopback(url)
    encrypted = urlsplit(url).scheme == "https"
    return {"trust_env": not local, "verify": client_context(ca_file) if encrypted else not local}
