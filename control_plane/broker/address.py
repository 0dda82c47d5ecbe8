"""Where the control plane finds the broker: one server, or Sentinels that know which of several is the primary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from shared.errors import Invalid
from shared.sockets import celery_tls, redis_tls

_ONE = {"redis", "rediss"}
_SEVERAL = {"redis+sentinel": "redis", "rediss+sentinel": "rediss"}
_SENTINEL_PORT = 26379


@dataclass(frozen=True)
class Sentinels:
    """The processes that watch the servers, and the name under which they know them."""

    addresses: tuple[tuple[str, int], ...]
    name: str


@dataclass(frozen=True)
class BrokerAddress:
    """A parsed FLEET_BROKER_URL."""

    url: str
    ca_file: str = ""
    """Authorities that certificates may come from, besides the machine's."""
    sentinels: Sentinels | None = None

    @classmethod
    def parse(cls, url: str, ca_file: str = "") -> BrokerAddress:
        """`redis://USER:PASSWORD@HOST:PORT/0`, or `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME`.

        With `rediss`, all connections use TLS. Raises Invalid.
        """
        parts = urlsplit(url)
        if parts.scheme in _ONE and parts.hostname:
            return cls(url, ca_file)
        if parts.scheme in _SEVERAL and parts.path.strip("/"):
            return cls(url, ca_file, Sentinels(tuple(_sentinels(parts)), parts.path.strip("/")))
        raise _invalid()

    @property
    def shown(self) -> str:
        """The address without user and password."""
        parts = urlsplit(self.url)
        if self.sentinels is None:
            return f"{parts.hostname}:{parts.port or 6379}"
        return f"{self.sentinels.name} of the Sentinels {parts.netloc.rpartition('@')[2]}"

    def connect(self, **options: Any) -> redis.Redis:
        """A client of the server, or of the one that is the primary when it connects; `options` of redis-py."""
        if self.sentinels is None:
            return redis.Redis.from_url(self.url, **options, **redis_tls(self.url, self.ca_file))
        # Untyped in redis-py.
        asked: Any = cast("Any", Sentinel)(
            self.sentinels.addresses, sentinel_kwargs=self._sentinel_options(options), **options, **self._login()
        )
        made: redis.Redis = asked.master_for(self.sentinels.name)
        return made

    def celery_settings(self, **options: Any) -> dict[str, Any]:
        """Celery's settings for the same server; `options` of its transport."""
        if self.sentinels is None:
            tls = celery_tls(self.url, self.ca_file)
            return {"broker_url": self.url, "broker_use_ssl": tls, "broker_transport_options": options}
        login = self._login()
        user, password = (quote(login[name], safe="") for name in ("username", "password"))
        hosts = [f"{_bracketed(host)}:{port}" for host, port in self.sentinels.addresses]
        sentinels = {"master_name": self.sentinels.name, "sentinel_kwargs": self._sentinel_options(options)}
        return {
            "broker_url": ";".join(f"sentinel://{user}:{password}@{host}" for host in hosts),
            "broker_use_ssl": celery_tls(self._server_url, self.ca_file),
            "broker_transport_options": {**options, **sentinels},
        }

    def replicas(self, client: redis.Redis) -> list[tuple[str, int]]:
        """The addresses of the available replicas, as the Sentinels know them; `client` is one of `connect`.

        Empty without Sentinels, or if none of them answers.
        """
        pool = client.connection_pool
        if self.sentinels is None or not isinstance(pool, SentinelConnectionPool):
            return []
        found: list[tuple[str, int]] = pool.sentinel_manager.discover_slaves(self.sentinels.name)
        return found

    def connect_to(self, host: str, port: int, **options: Any) -> redis.Redis:
        """A client of one of the servers behind the Sentinels."""
        return redis.Redis(host=host, port=port, **options, **self._login())

    @property
    def _server_url(self) -> str:
        """An address of the servers' scheme, for what depends on the scheme alone."""
        scheme = urlsplit(self.url).scheme
        return f"{_SEVERAL.get(scheme, scheme)}://"

    def _login(self) -> dict[str, Any]:
        """User, password and TLS of the servers, which Sentinels have in common with them."""
        parts = urlsplit(self.url)
        login = {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
        tls = {"ssl": True, **redis_tls(self._server_url, self.ca_file)} if self._server_url == "rediss://" else {}
        return {**login, **tls}

    def _sentinel_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Without retries: the next Sentinel is asked instead."""
        sockets = {name: value for name, value in options.items() if name.startswith("socket_")}
        return {**sockets, **self._login(), "retry": Retry(NoBackoff(), 0)}


def _sentinels(parts: SplitResult) -> Iterator[tuple[str, int]]:
    for each in parts.netloc.rpartition("@")[2].split(","):
        place = urlsplit(f"//{each}")
        try:
            port = place.port or _SENTINEL_PORT
        except ValueError:
            raise _invalid() from None
        if not place.hostname:
            raise _invalid()
        yield place.hostname, port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _invalid() -> Invalid:
    return Invalid(
        "invalid broker URL",
        code="E-BROKER-URL",
        next="FLEET_BROKER_URL=redis://control:PASSWORD@host:6379/0, "
        "or redis+sentinel://control:PASSWORD@host:26379,host:26379/NAME",
    )
