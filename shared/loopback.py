"""URLs of this machine itself: which they are, and how they are asked."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine, by its name or number; nothing is looked up."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_options(url: str) -> dict[str, Any]:
    """What an httpx client for `url` is given: `trust_env` and `verify`.

    A proxy from the environment cannot reach this machine's own loopback, and where nothing is encrypted, the
    certificates of all authorities need not be loaded, which takes 30 ms.
    """
    local = is_loopback(url)
    return {"trust_env": not local, "verify": not (local and urlsplit(url).scheme == "http")}
