"""The way out of a run: connects to a host where the owner's policy allows it, at an address that was checked."""

from __future__ import annotations

import base64
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from drone.sandbox.network.access import NetworkAccess, Resolve, resolve
from shared.addresses import is_one_of, own_addresses
from shared.proxies import is_excepted

CONNECT_SECONDS = 20.0
_LARGEST_HEAD = 64 * 1024
_DEFAULT_PORT = 3128


class Gateway:
    """Used by the proxy of a run's commands, and by the tools that connect themselves: nothing goes past the policy."""

    def __init__(self, access: NetworkAccess, environ: Mapping[str, str], resolve: Resolve = resolve) -> None:
        """`environ`: the drone's own environment, which may name a proxy of the owner's network."""
        self.access = access
        self._environ = environ
        self._owners = _owners_proxy(environ)
        self._resolve = resolve

    def connect(self, host: str, port: int) -> socket.socket:
        """A connected socket. Raises Refusal where the policy does not allow it, and OSError where nothing answers."""
        addresses = self.access.addresses(host, port, self._resolve)
        if self._owners is not None and not self._goes_past_proxy(host, addresses):
            # By the checked address, so that the other proxy's resolver does not decide; the name is in the TLS hello.
            return _through(self._owners, addresses[0], port)
        failure: OSError = OSError("no address")
        for address in addresses:
            try:
                return socket.create_connection((address, port), CONNECT_SECONDS)
            except OSError as error:
                failure = error
        raise failure

    def _goes_past_proxy(self, host: str, addresses: Sequence[str]) -> bool:
        """Whether NO_PROXY names the host, or it is this machine, where the proxy would reach its own one instead."""
        if is_excepted(host.rstrip(".").lower(), self._environ):
            return True
        own = own_addresses()
        found = (ipaddress.ip_address(each.partition("%")[0]) for each in addresses)
        return any(each.is_loopback or is_one_of(each, own) for each in found)


def _through(owners: _OwnersProxy, address: str, port: int) -> socket.socket:
    """A tunnel through the owner's proxy."""
    server = socket.create_connection((owners.host, owners.port), CONNECT_SECONDS)
    target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    login = f"Proxy-Authorization: {owners.authorization}\r\n" if owners.authorization else ""
    server.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        chunk = server.recv(1)
        if not chunk or len(answer) > _LARGEST_HEAD:
            break
        answer += chunk
    status = answer.split(b"\r\n")[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":
        server.close()
        raise OSError(f"the proxy {owners.host} answered {b' '.join(status[1:]).decode(errors='replace')[:80]}")
    return server


@dataclass(frozen=True)
class _OwnersProxy:
    """An HTTP proxy of the owner's network: connections of commands go through it too."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)
    """The value of the header `Proxy-Authorization`, which commands never see."""


def _owners_proxy(environ: Mapping[str, str]) -> _OwnersProxy | None:
    """The HTTP proxy that the drone's own environment names for https; None without one, and for other protocols."""
    url = next((environ[name] for name in ("https_proxy", "HTTPS_PROXY") if environ.get(name)), "")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not url or not host or parts.scheme != "http":
        return None
    return _OwnersProxy(host, port or _DEFAULT_PORT, _authorization(parts.username, parts.password))


def _authorization(user: str | None, password: str | None) -> str:
    if user is None:
        return ""
    word = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(word.encode()).decode()}"
