"""URLs of this machine itself: how to detect them, and how clients reach them."""

from __future__ import annotations

import ipaddress
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from shared.tls import client_context

_NAMES = ("localhost", ".localhost", "127.0.0.1", "::1")


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


def bypass_proxies(environ: MutableMapping[str, str], *urls: str) -> None:
    """Let no client library send requests for this machine, and for those of `urls` that lead to it, through a proxy.

    NO_PROXY is all that git, boto and LiteLLM have in common. Other exceptions in it stay; without a proxy, nothing
    changes.
    """
    names = {name.lower() for name, value in environ.items() if value}
    if not names & {"http_proxy", "https_proxy", "all_proxy"}:
        return
    # Where both are set, libraries read the small one, even if it is empty.
    given = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    excepted = [part for each in given.split(",") if (part := each.strip())]
    if "*" not in excepted:
        local = [urlsplit(url).hostname or "" for url in urls if is_loopback(url)]
        environ["no_proxy"] = environ["NO_PROXY"] = ",".join(dict.fromkeys([*excepted, *_NAMES, *local]))
