"""Redis as the control plane uses it: the drones' queues and users, the runs' keys, and change notifications.

A server that cannot be used raises `Unreachable`, and a refused login `FleetFault`; callers need not know the client
library's connection errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast
from urllib.parse import quote, urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.client import PubSub
from redis.retry import Retry

from control_plane.broker import users as broker_users
from control_plane.broker.users import DroneUser
from shared import names
from shared.errors import FleetFault, Invalid, Unreachable
from shared.sockets import celery_tls, keepalive_options, redis_tls
from shared.subscriptions import CheckedSubscription
from shared.tls import failed_handshake

TRUST = "FLEET_CA_FILE=FILE        with the certificate of its authority, for the control plane"
WAKE = "fleet:wake"
"""Channel that wakes the supervisor's loops: something was written that one of them must act on."""
RUN_KEY_SECONDS = 7 * 24 * 3600
_RUN_KEY_BYTES = 128
"""What the value of a run's key has at most."""
_TIMEOUT = 5.0

# These scripts, and `revoke` of a lost run, are the only writers of a run's key on this side. A claimed or revoked key
# is never reset: this prevents an order from running twice.
_OFFER = """
local now = redis.call('GET', KEYS[1])
if now and now ~= ARGV[1] then return now end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return ARGV[1]
"""
_WITHDRAW = """
local now = redis.call('GET', KEYS[1])
if now and now ~= ARGV[1] then return now end
if now or ARGV[4] == '1' then redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3]) end
return now or ''
"""
_REFUSALS = 1000
"""The most entries of the ACL LOG that are read; a server holds 128 unless it is configured otherwise."""


@dataclass(frozen=True)
class BrokerRefusal:
    """What the server refused to a user: a command, a key or a channel; or a log-in under this name."""

    user: str
    what: str
    is_login: bool
    address: str = ""
    """Of the client, as the server sees it, without the port."""


class Broker:
    """One Redis or Valkey. Connects on first use; safe to share between threads."""

    def __init__(
        self, url: str, public_url: str | None = None, ca_file: str = "", shared_login: tuple[str, str] | None = None
    ) -> None:
        """`ca_file`: authorities that its certificate may come from, besides the machine's.

        `shared_login`: user and password of all drones, for a server on which no users can be created.
        """
        self._shared_login = shared_login
        self.url = _understood(url)
        self._ca_file = ca_file
        self._public = _understood(public_url or url)
        # One retry: a connection that a server restart has cut is reopened silently.
        self.redis = redis.Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="replace",
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            socket_keepalive=True,
            socket_keepalive_options=keepalive_options(),
            health_check_interval=10,
            retry=Retry(NoBackoff(), 1),
            **redis_tls(url, ca_file),
        )
        self._offer = self.redis.register_script(_OFFER)
        self._withdraw = self.redis.register_script(_WITHDRAW)
        self._granted: dict[str, DroneUser] = {}

    # --- the server ------------------------------------------------------------------

    def ping(self) -> None:
        """Return if the server responds and accepts our credentials. Raises Unreachable or FleetFault otherwise."""
        with self.reaching():
            self.redis.ping()

    def server(self) -> str:
        """Name and version, for `doctor`."""
        info = self._info()
        return f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"

    def redis_version(self) -> tuple[int, int]:
        """Major and minor Redis version whose commands the server supports. Raises Unreachable."""
        major, minor = str(self._info()["redis_version"]).split(".")[:2]
        return int(major), int(minor)

    def memory(self) -> tuple[int, int]:
        """Bytes that the server uses, and may use (0 = unlimited). Raises Unreachable."""
        with self.reaching():
            info = self.redis.info("memory")
        return int(info["used_memory"]), int(info["maxmemory"])

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Raise errors of the server or the connection inside the block as FleetFault, mostly Unreachable."""
        try:
            yield
        except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
            raise FleetFault(
                f"the broker {self.shown} denies access to the control plane's user",
                code="E-BROKER-DENIED",
                why=str(error),
                next="check the user and password in FLEET_BROKER_URL",
            ) from error
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            raise self.unreachable(error) from error
        except redis.ResponseError as error:
            if not _takes_no_writes(error):
                raise
            raise Unreachable(
                f"the broker {self.shown} accepts no writes",
                code="E-BROKER-FULL",
                why=str(error),
                next="free disk space there, or give it more memory",
            ) from error

    def unreachable(self, error: Exception) -> Unreachable:
        return failed_handshake(self.url, error, trust=TRUST) or Unreachable(
            f"the broker {self.shown} does not answer",
            code="E-BROKER-UNREACHABLE",
            why=str(error),
            next="start it, or check FLEET_BROKER_URL; then: fleet doctor",
        )

    @property
    def shown(self) -> str:
        """The address without user and password."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port or 6379}"

    def refusals(self) -> Counter[BrokerRefusal]:
        """How often each refusal is in the server's ACL LOG. Raises Unreachable, FleetFault without the right to it."""
        with self.reaching():
            # Two words, so that the library parses nothing: it fails at a name like `a=b`, which a client may have.
            entries: list[Any] = cast("Any", self.redis).execute_command("ACL", "LOG", _REFUSALS)
        found: Counter[BrokerRefusal] = Counter()
        for each in entries:
            entry = each if isinstance(each, dict) else dict(zip(each[::2], each[1::2], strict=True))
            address = _address_in(str(entry.get("client-info", "")))
            refusal = BrokerRefusal(str(entry["username"]), str(entry["object"]), entry["reason"] == "auth", address)
            found[refusal] += int(entry["count"])
        return found

    def subscribe(self, *channels: str, patterns: Iterable[str] = ()) -> PubSub:
        """A subscription with its own connection; the caller closes it."""
        pubsub = CheckedSubscription(self.redis.connection_pool, ignore_subscribe_messages=True)
        with self.reaching():
            if channels:
                pubsub.subscribe(*channels)
            if wanted := list(patterns):
                pubsub.psubscribe(*wanted)
        return pubsub

    def close(self) -> None:
        self.redis.close()
        if "celery" in self.__dict__:
            self.celery.close()

    # --- change notifications -----------------------------------------------------------

    def changed(self, order_id: str) -> None:
        """Notify every follower that this order's row or steps changed, and the supervisor that there may be work.

        Call it after the commit. An unavailable server is not an error here: followers and loops also poll.
        """
        try:
            with self.redis.pipeline(transaction=False) as pipe:
                pipe.publish(names.ORDER_CHANGED, order_id)
                pipe.publish(WAKE, order_id)
                pipe.execute()
        except (redis.RedisError, OSError):
            return

    def stepped(self, order_ids: Iterable[str]) -> None:
        """As `changed`, for new steps only: the supervisor is not woken."""
        try:
            with self.redis.pipeline(transaction=False) as pipe:
                for order_id in order_ids:
                    pipe.publish(names.ORDER_CHANGED, order_id)
                pipe.execute()
        except (redis.RedisError, OSError):
            return

    def wake(self) -> None:
        """Wake the supervisor's loops; they also poll."""
        try:
            self.redis.publish(WAKE, "")
        except (redis.RedisError, OSError):
            return

    # --- drones' users -------------------------------------------------------------------

    def drone_url(self, drone_id: str, password: str) -> str:
        """The address that a drone receives, with its own user in it."""
        parts = urlsplit(self._public)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        user, password = self._shared_login or (drone_id, password)
        place = f"{quote(user, safe='')}:{quote(password, safe='')}@{host}:{parts.port or 6379}"
        return urlunsplit((parts.scheme, place, "/0", parts.query, ""))

    def ensure_user(
        self, drone_id: str, *password_hashes: str, needs_scripts: bool = False, may_write: bool = True
    ) -> None:
        """Create or renew the drone's user, with exactly the rights of `broker_users`."""
        if self._shared_login:
            return
        user = DroneUser(password_hashes, needs_scripts, may_write)
        with self._managing_users():
            self._set_user(drone_id, user)
            self._save_users()
        self._granted[drone_id] = user

    def renew_user(
        self, drone_id: str, password_hash: str, *, needs_scripts: bool = False, may_write: bool = True
    ) -> None:
        """As `ensure_user`, and close its connections: those that used another password cannot come back."""
        if self._shared_login:
            return
        self.ensure_user(drone_id, password_hash, needs_scripts=needs_scripts, may_write=may_write)
        with self.reaching():
            self.redis.client_kill_filter(user=drone_id)

    def users(self) -> set[str]:
        """The drones that have a user of their own now. Raises FleetFault if users cannot be managed."""
        if self._shared_login:
            return set()
        with self._managing_users():
            return {user for user in cast("list[str]", self.redis.acl_users()) if _is_drone(user)}

    def ensure_users(self, wanted: Mapping[str, DroneUser], there: set[str]) -> list[str]:
        """Give each drone its user, and remove the users of drones that no longer exist.

        `there` is the result of `users` from before `wanted` was read: a drone that registers in between is
        never in `there` alone, and keeps its user. Returns the ids that were missing or surplus. The first call of a
        process rewrites every user, so that newer rules take effect; later calls write only those that are missing or
        have changed.
        """
        if self._shared_login:
            return []
        missing = [drone for drone, user in wanted.items() if drone not in there or self._granted.get(drone) != user]
        surplus = sorted(there - set(wanted))
        with self._managing_users():
            for drone_id in missing:
                self._set_user(drone_id, wanted[drone_id])
            if surplus:
                self.redis.acl_deluser(*surplus)
            if missing or surplus:
                self._save_users()
        self._granted = dict(wanted)
        return [drone for drone in missing if drone not in there] + surplus

    def remove_user(self, drone_id: str) -> None:
        """Cut the drone off immediately: delete its user, its connections and its keys.

        A login that it shares with others stays.
        """
        with self._managing_users():
            if not self._shared_login:
                self.redis.acl_deluser(drone_id)
                self._save_users()
            # The runs' keys stay for their 7 days: a revoked run must not be claimed, regardless of what happens to the
            # name. But a drone can write anything there, which would take up memory forever.
            self.redis.delete(*_keys_of(drone_id), *self._oversized_run_keys(drone_id))
        self._granted.pop(drone_id, None)

    def _oversized_run_keys(self, drone_id: str) -> list[str]:
        keys = list(self.redis.scan_iter(match=names.run_key(drone_id, "*"), count=1000))
        with self.redis.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.strlen(key)
            return [key for key, size in zip(keys, pipe.execute(), strict=True) if size > _RUN_KEY_BYTES]

    @contextmanager
    def _managing_users(self) -> Iterator[None]:
        """As `reaching`; a server on which the control plane may not manage users raises a FleetFault of its own."""
        with self.reaching():
            try:
                yield
            except redis.ResponseError as error:
                denied = isinstance(error, redis.exceptions.NoPermissionError)
                if not denied and "unknown command" not in str(error).lower():
                    raise
                raise FleetFault(
                    f"the control plane cannot create users on the broker {self.shown}",
                    code="E-BROKER-USERS",
                    why=str(error),
                    next="allow ACL to its user; where that is impossible: FLEET_SHARED_BROKER_LOGIN=USER:PASSWORD",
                ) from error

    def _set_user(self, drone_id: str, user: DroneUser) -> None:
        words = broker_users.rules(drone_id, user, knows_setinfo=self._knows_setinfo)
        cast("Any", self.redis).execute_command("ACL SETUSER", drone_id, *words)

    def _save_users(self) -> None:
        try:
            self.redis.acl_save()
        except redis.ResponseError as error:
            # A server without an ACL file loses its users when it restarts; `ensure_users` restores them.
            if "ACL file" not in str(error):
                raise

    @property
    def _knows_setinfo(self) -> bool:
        return self.redis_version() >= (7, 2)

    def _info(self) -> dict[str, Any]:
        with self.reaching():
            return self.redis.info("server")

    # --- runs' keys ------------------------------------------------------------------------

    def offer_run(self, drone_id: str, run_id: str, generation: int) -> bool:
        """Write that this run may be claimed. Returns False and writes nothing if it was already claimed or revoked."""
        wanted = names.dispatched(generation)
        with self.reaching():
            found = self._offer(keys=[names.run_key(drone_id, run_id)], args=[wanted, RUN_KEY_SECONDS])
        return cast("str", found) == wanted

    def withdraw_run(self, drone_id: str, run_id: str, generation: int, *, if_missing: bool = True) -> str:
        """Withdraw an offer that is not claimed. Returns the previous value of the key: `dispatched:…` means withdrawn.

        Returns '' for a missing key, because a claim may have come before Redis was emptied. With `if_missing`, the key
        is still written as revoked, so that no claim can follow; a drone that holds the run then ends it.
        """
        offered, revoked = names.dispatched(generation), names.revoked(generation)
        args: list[str | int] = [offered, revoked, RUN_KEY_SECONDS, int(if_missing)]
        with self.reaching():
            return cast("str", self._withdraw(keys=[names.run_key(drone_id, run_id)], args=args))

    def revoke_run(self, drone_id: str, run_id: str, generation: int) -> None:
        """Overwrite the key regardless of its value: this run is over, also for a drone that claimed it."""
        with self.reaching():
            self.redis.set(names.run_key(drone_id, run_id), names.revoked(generation), ex=RUN_KEY_SECONDS)

    def run_keys(self, drone_id: str, run_ids: Iterable[str]) -> dict[str, str]:
        """The value of each run's key; '' if there is none."""
        wanted = list(run_ids)
        if not wanted:
            return {}
        with self.reaching():
            found = cast("list[str | None]", self.redis.mget([names.run_key(drone_id, run) for run in wanted]))
        return {run: value or "" for run, value in zip(wanted, found, strict=True)}

    def lease(self, drone_id: str) -> str | None:
        """The drone's lease as the drone wrote it (`boot:time`), or None if it expired."""
        with self.reaching():
            return cast("str | None", self.redis.get(names.lease_key(drone_id)))

    # --- queues ------------------------------------------------------------------------------

    def publish_order(self, *, drone_id: str, order_id: str, run_id: str, generation: int, envelope: str) -> None:
        """Put the sealed order onto the drone's queue. Returns once the server has it; raises Unreachable."""
        from kombu.exceptions import OperationalError

        try:
            self.celery.send_task(
                names.RUN_TASK,
                args=[order_id, run_id, generation, envelope],
                task_id=run_id,
                queue=names.queue(drone_id),
                # The arguments as Flower and the logs show them: ids only, although the rest is sealed anyway.
                argsrepr=f"order={order_id} generation={generation}",
                retry=False,
            )
        except (OperationalError, redis.RedisError, OSError) as error:
            raise self.unreachable(error) from error

    def queue_length(self, drone_id: str) -> int:
        """Messages on the drone's queue that it has not taken yet."""
        with self.reaching():
            return self.redis.llen(names.queue(drone_id))

    def prepare(self) -> None:
        """Prepare what `publish_order` needs, so that the first order does not wait for it. Nothing is sent."""
        _ = self.celery.amqp

    @cached_property
    def celery(self) -> Any:
        """The Celery application that feeds the queues and sends events to Flower."""
        from celery import Celery

        app = Celery("dronefleet", broker=self.url, set_as_current=False)
        app.conf.update(
            broker_use_ssl=celery_tls(self.url, self._ca_file),
            task_ignore_result=True,
            task_send_sent_event=True,
            broker_connection_retry=False,
            broker_connection_timeout=_TIMEOUT,
            # The relay does its own retries; an attempt must end, so that its failure can be reported.
            broker_transport_options={
                "max_retries": 1,
                "interval_start": 0,
                "interval_step": 0.1,
                "interval_max": 0.1,
                "socket_timeout": _TIMEOUT,
                "socket_connect_timeout": _TIMEOUT,
            },
        )
        return app


def _understood(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"redis", "rediss"} or not parts.hostname:
        raise Invalid(
            "invalid broker URL",
            code="E-BROKER-URL",
            next="FLEET_BROKER_URL=redis://control:PASSWORD@host:6379/0",
        )
    return url


def _address_in(client_info: str) -> str:
    """The host of `addr=HOST:PORT`, which stands before everything that the client itself names."""
    found = next((part for part in client_info.split() if part.startswith("addr=")), "")
    return found.removeprefix("addr=").rpartition(":")[0].strip("[]")[:64]


def _keys_of(drone_id: str) -> list[str]:
    ours = [names.lease_key, names.boot_key, names.inbox_key, names.events_stream, names.queue]
    queue = names.queue(drone_id)
    # Written by drones of earlier versions.
    kombu = [f"{name}.{drone_id}" for name in ("unacked", "unacked_index", "unacked_mutex")]
    return [*(name(drone_id) for name in ours), *broker_users.binding_keys(queue), *kombu]


def _takes_no_writes(error: redis.ResponseError) -> bool:
    """Whether the server refuses every write: its disk or its memory is full, or it is a replica."""
    known = (redis.exceptions.OutOfMemoryError, redis.exceptions.ReadOnlyError)
    return isinstance(error, known) or "MISCONF" in str(error)


def _is_drone(user: str) -> bool:
    return len(user) == names.ID_LENGTH and all(letter in "0123456789abcdef" for letter in user)
