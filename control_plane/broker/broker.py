"""Redis as the control plane uses it: the drones' queues and users, the runs' keys, and change notifications.

A server that cannot be used raises `Unreachable`, and a refused login `FleetFault`; callers need not know the client
library's connection errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError

from control_plane.broker.address import BrokerAddress
from control_plane.broker.users import DroneUser, ServerUsers, binding_keys, redis_version
from shared import names
from shared.errors import FleetFault, Invalid, Unreachable
from shared.sockets import keepalive_options
from shared.subscriptions import CheckedSubscription
from shared.terminal import logs
from shared.tls import failed_handshake

log = logs.get(__name__)
T = TypeVar("T")

TRUST = "FLEET_CA_FILE=FILE        with the certificate of its authority, for the control plane"
WAKE = "fleet:wake"
"""Channel that wakes the supervisor's loops: something was written that one of them must act on."""
_NEVER_WRITTEN = "fleet:never-written"
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
# A drone may write anything into its keys: only numbers and an id leave the server, and a key of another kind counts as
# empty.
_BACKLOG = """
local queued, unstored = redis.pcall('LLEN', KEYS[1]), redis.pcall('XLEN', KEYS[2])
if type(queued) ~= 'number' then queued = 0 end
if type(unstored) ~= 'number' then return {queued, 0, ''} end
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
return {queued, unstored, first and first[1] or ''}
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


@dataclass(frozen=True)
class Backlog:
    """What waits in the keys of one drone."""

    queued: int
    """Messages that it has not taken."""
    unstored: int
    """Entries of its stream that no collector has stored."""
    oldest_s: float
    """Seconds since the oldest of them was added, by the server's clock; 0: there are none."""


class Broker:
    """One Redis or Valkey, or the primary of several. Connects on first use; safe to share between threads."""

    def __init__(
        self, url: str, public_url: str | None = None, ca_file: str = "", shared_login: tuple[str, str] | None = None
    ) -> None:
        """`ca_file`: authorities that its certificate may come from, besides the machine's.

        `shared_login`: user and password of all drones, for a server on which no users can be created.
        """
        self._shared_login = shared_login
        self.url = url
        self._address = BrokerAddress.parse(url, ca_file)
        self._public = _one_server(public_url or url)
        # One retry: a connection that a server restart has cut is reopened silently.
        self._options: dict[str, Any] = {
            "decode_responses": True,
            "encoding_errors": "replace",
            "socket_timeout": _TIMEOUT,
            "socket_connect_timeout": _TIMEOUT,
            "socket_keepalive": True,
            "socket_keepalive_options": keepalive_options(),
            "health_check_interval": 10,
            "retry": Retry(NoBackoff(), 1),
        }
        self.redis = self._address.connect(**self._options)
        self._offer = self.redis.register_script(_OFFER)
        self._withdraw = self.redis.register_script(_WITHDRAW)
        self._backlog = self.redis.register_script(_BACKLOG)
        self._users = ServerUsers(self.redis)
        self._replica_users: dict[tuple[str, int], ServerUsers] = {}

    # --- the server ------------------------------------------------------------------

    def ping(self) -> None:
        """Return if the server responds and accepts our credentials. Raises Unreachable or FleetFault otherwise."""
        with self.reaching():
            self.redis.ping()

    def check_writes(self) -> None:
        """Return if the server accepts writes; nothing is written. Raises Unreachable or FleetFault otherwise."""
        with self.reaching():
            # Of a key that never exists, XX writes nothing. A server that accepts no writes refuses it all the same.
            self.redis.set(_NEVER_WRITTEN, "", xx=True)

    def server(self) -> str:
        """Name and version, for `doctor`."""
        info = self._info()
        return f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"

    def redis_version(self) -> tuple[int, int]:
        """Major and minor Redis version whose commands the server supports. Raises Unreachable."""
        return redis_version(self._info())

    def memory(self) -> tuple[int, int]:
        """Bytes that the server uses, and may use (0 = unlimited). Raises Unreachable."""
        with self.reaching():
            info = self.redis.info("memory")
        return int(info["used_memory"]), int(info["maxmemory"])

    def eviction(self) -> str:
        """Which keys the server deletes when its memory is full: `noeviction`, or another maxmemory-policy."""
        with self.reaching():
            return str(self.redis.info("memory").get("maxmemory_policy", "noeviction"))

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
                next="free disk space there or give it more memory; of a replica, name the primary in FLEET_BROKER_URL",
            ) from error

    def unreachable(self, error: Exception) -> Unreachable:
        """The error for a connection that failed."""
        # redis-py describes each Sentinel's client, in a thousand characters.
        lost = isinstance(error, MasterNotFoundError)
        return failed_handshake(f"//{self.shown}", error, trust=TRUST) or Unreachable(
            f"the broker {self.shown} does not answer",
            code="E-BROKER-UNREACHABLE",
            why="none of the Sentinels answers and knows an available primary of this name" if lost else str(error),
            next="start it, or check FLEET_BROKER_URL; then: fleet doctor",
        )

    @property
    def shown(self) -> str:
        """The address without user and password."""
        return self._address.shown

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

    def subscribe(self, *channels: str, patterns: Iterable[str] = ()) -> CheckedSubscription:
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
        for replica in self._replica_users.values():
            replica.close()
        if "celery" in self.__dict__:
            self.celery.close()

    # --- change notifications -----------------------------------------------------------

    def changed(self, order_id: str) -> None:
        """Notify every follower that this order's row or steps changed, and the supervisor that there may be work.

        Call it after the commit. An unavailable server is not an error here: followers and loops also poll.
        """
        self._publish([order_id], names.ORDER_ROW_CHANGED, names.ORDER_CHANGED, WAKE)

    def changed_by_supervisor(self, order_ids: Iterable[str]) -> None:
        """As `changed`, without waking the supervisor."""
        self._publish(order_ids, names.ORDER_ROW_CHANGED, names.ORDER_CHANGED)

    def stepped(self, order_ids: Iterable[str]) -> None:
        """As `changed`, for new steps only: the supervisor is not woken, and lists show their figures a bit later."""
        self._publish(order_ids, names.ORDER_CHANGED)

    def _publish(self, order_ids: Iterable[str], *channels: str) -> None:
        try:
            with self.redis.pipeline(transaction=False) as pipe:
                for order_id in order_ids:
                    for channel in channels:
                        pipe.publish(channel, order_id)
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

    def ensure_user(self, drone_id: str, *password_hashes: str, may_write: bool = True) -> None:
        """Create or renew the drone's user, with exactly the rights of `control_plane.broker.users`."""
        if self._shared_login:
            return
        user = DroneUser(password_hashes, may_write)
        with self._managing_users():
            self._users.give(drone_id, user)
        self._on_replicas(lambda replica: replica.give(drone_id, user))

    def renew_user(self, drone_id: str, password_hash: str, *, may_write: bool = True) -> None:
        """As `ensure_user`, and close its connections: those that used another password cannot come back."""
        if self._shared_login:
            return
        self.ensure_user(drone_id, password_hash, may_write=may_write)
        with self.reaching():
            self.redis.client_kill_filter(user=drone_id)

    def users(self) -> set[str]:
        """The drones that have a user of their own now. Raises FleetFault if users cannot be managed."""
        if self._shared_login:
            return set()
        with self._managing_users():
            return self._users.drones()

    def users_by_server(self) -> dict[ServerUsers, set[str]]:
        """As `users`, for the server and each available replica: what `ensure_users` compares with."""
        if self._shared_login:
            return {}
        return {self._users: self.users(), **self._on_replicas(ServerUsers.drones)}

    def ensure_users(self, wanted: Mapping[str, DroneUser], there: Mapping[ServerUsers, set[str]]) -> list[str]:
        """Give each drone its user on every server in `there`; remove users and keys of drones that no longer exist.

        `there` is the result of `users_by_server` from before `wanted` was read: a drone that registers in between is
        never in `there` alone, and keeps its user. Returns the ids that were missing or surplus on any server.
        """
        changed: list[str] = []
        if self._users in there:
            with self._managing_users():
                changed += self._users.correct(wanted, there[self._users])
                for drone_id in there[self._users] - set(wanted):
                    self._delete_keys(drone_id)
        replicas = [server for server in there if server is not self._users]
        for found in self._on_replicas(lambda each: each.correct(wanted, there[each]), among=replicas).values():
            changed += found
        return list(dict.fromkeys(changed))

    def remove_user(self, drone_id: str) -> None:
        """Cut the drone off immediately: delete its user, its connections and its keys.

        A login that it shares with others stays.
        """
        with self._managing_users():
            if not self._shared_login:
                self._users.delete(drone_id)
            self._delete_keys(drone_id)
        if not self._shared_login:
            self._on_replicas(lambda replica: replica.delete(drone_id))

    def _on_replicas(
        self, change: Callable[[ServerUsers], T], among: Iterable[ServerUsers] | None = None
    ) -> dict[ServerUsers, T]:
        """The results of `change` for each available replica: one that is promoted has the users already.

        A replica that fails is left out; `ensure_users` corrects it when it is back, as a primary, too.
        """
        done = {}
        for replica in self._known_replicas() if among is None else among:
            try:
                done[replica] = change(replica)
            except (redis.RedisError, OSError) as error:
                log.warning("the drones' users on a replica of the broker were not written", why=str(error))
        return done

    def _known_replicas(self) -> list[ServerUsers]:
        found = self._address.replicas(self.redis)
        for place in found:
            if place not in self._replica_users:
                client = self._address.connect_to(*place, **self._options)
                self._replica_users[place] = ServerUsers(client)
        return [self._replica_users[place] for place in found]

    def _delete_keys(self, drone_id: str) -> None:
        # The runs' keys stay for their 7 days: a revoked run must not be claimed, regardless of what happens to the
        # name. But a drone can write anything there, which would take up memory forever.
        self.redis.delete(*_keys_of(drone_id), *self._oversized_run_keys(drone_id))

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
                argsrepr=names.shown_arguments(order_id, generation),
                retry=False,
            )
        except (OperationalError, redis.RedisError, OSError) as error:
            raise self.unreachable(error) from error

    def queue_length(self, drone_id: str) -> int:
        """Messages on the drone's queue that it has not taken yet."""
        with self.reaching():
            return self.redis.llen(names.queue(drone_id))

    def backlogs(self, drone_ids: Iterable[str]) -> dict[str, Backlog]:
        """What each drone's queue and stream hold, in one round trip. Raises Unreachable."""
        wanted = list(drone_ids)
        with self.reaching(), self.redis.pipeline(transaction=False) as pipe:
            pipe.time()
            for drone_id in wanted:
                self._backlog(keys=[names.queue(drone_id), names.events_stream(drone_id)], client=pipe)
            (seconds, _), *found = pipe.execute()
        return {
            drone: Backlog(queued, unstored, _age(first, seconds))
            for drone, (queued, unstored, first) in zip(wanted, found, strict=True)
        }

    def prepare(self) -> None:
        """Prepare what `publish_order` needs, so that the first order does not wait for it. Nothing is sent."""
        _ = self.celery.amqp

    @cached_property
    def celery(self) -> Any:
        """The Celery application that feeds the queues and sends events to Flower."""
        from celery import Celery

        app = Celery("dronefleet", set_as_current=False)
        app.conf.update(
            # The relay does its own retries; an attempt must end, so that its failure can be reported.
            **self._address.celery_settings(
                max_retries=1,
                interval_start=0,
                interval_step=0.1,
                interval_max=0.1,
                socket_timeout=_TIMEOUT,
                socket_connect_timeout=_TIMEOUT,
            ),
            task_ignore_result=True,
            task_send_sent_event=True,
            broker_connection_retry=False,
            broker_connection_timeout=_TIMEOUT,
        )
        return app


def _one_server(url: str) -> str:
    """The address that drones connect to. Raises Invalid for one with Sentinels, which drones do not ask."""
    if BrokerAddress.parse(url).sentinels is not None:
        raise Invalid(
            "drones need one address that leads to the primary",
            code="E-BROKER-URL",
            why="they are not told of the Sentinels in FLEET_BROKER_URL",
            next="FLEET_PUBLIC_BROKER_URL=redis://host:6379/0, of a proxy as in deploy/haproxy.cfg",
        )
    return url


def _address_in(client_info: str) -> str:
    """The host of `addr=HOST:PORT`, which stands before everything that the client itself names."""
    found = next((part for part in client_info.split() if part.startswith("addr=")), "")
    return found.removeprefix("addr=").rpartition(":")[0].strip("[]")[:64]


def _keys_of(drone_id: str) -> list[str]:
    ours = [names.lease_key, names.boot_key, names.inbox_key, names.events_stream, names.queue]
    queue = names.queue(drone_id)
    return [*(name(drone_id) for name in ours), *binding_keys(queue)]


def _age(first: str, now: int) -> float:
    """Seconds since the entry with this id was added: the id begins with that time in milliseconds."""
    return max(0.0, now - int(first.partition("-")[0]) / 1000) if first else 0.0


def _takes_no_writes(error: redis.ResponseError) -> bool:
    """Whether the server refuses every write: its disk or memory is full, or it is a replica or lacks one."""
    known = (redis.exceptions.OutOfMemoryError, redis.exceptions.ReadOnlyError)
    return isinstance(error, known) or str(error).startswith(("MISCONF", "NOREPLICAS"))
