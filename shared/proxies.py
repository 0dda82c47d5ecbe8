"""Which proxy of the environment leads to a URL: errors name it, since its failures look like those of the endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Proxy:
    """A proxy that the environment names."""

    variable: str
    host: str
    """With its port, and without the login that its address may have."""

    def __str__(self) -> str:
        return f"the proxy {self.host} of {self.variable}"

    def advice(self, url: str) -> str:
        """What a user can do on the drone's machine if the proxy does not lead to this URL."""
        reached = urlsplit(url).hostname or "HOST"
        return f"on the drone: correct {self.variable}, or export NO_PROXY={reached}, then drone start"


def proxy_of(url: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy through which git, httpx and other libraries reach a URL; None if they reach it directly."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        return None
    if is_excepted(parts.hostname or "", environ):
        return None
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if address := environ.get(variable):
                return Proxy(variable, _host(address))
    return None


def is_excepted(host: str, environ: Mapping[str, str]) -> bool:
    """Whether NO_PROXY names the host, in lower case, or a domain that it is in."""
    names = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    entries = (each.strip().lower().lstrip(".") for each in names.split(","))
    return any(each in {"*", host} or (each and host.endswith(f".{each}")) for each in entries)


def _host(address: str) -> str:
    """Host and port; curl and Python take an address without a scheme, too."""
    return urlsplit(address if "//" in address else f"//{address}").netloc.rpartition("@")[2]
