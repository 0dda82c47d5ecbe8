"""The Celery application of one drone: its queue, its connection, and its only task."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP
from celery.exceptions import Ignore, Retry
from celery.worker.control import Panel
from celery.worker.request import Request
from celery.worker.state import revoked as revoked_runs
from kombu import Connection
from kombu.transport.redis import Channel, Transport

from shared import names
from shared.sockets import celery_tls, keepalive_options

ALLOWED_COMMANDS = frozenset(
    {
        "ping", "revoke", "terminate", "report", "conf", "dump_conf", "query_task", "clock", "stats", "scheduled",
        "dump_schedule", "reserved", "dump_reserved", "active", "dump_active", "revoked", "dump_revoked", "registered",
        "dump_tasks", "active_queues", "enable_events",
    }
)  # fmt: skip
"""Remote control: ping, the inspect reads, revoke and terminate; and the command that Flower sends every few seconds,
which changes nothing here, because events are always on."""


TRANSPORT_OPTIONS = {
    # No list of unacknowledged messages, which kombu would lock by scripts: messages are acknowledged early, and one
    # that is lost after that is published again.
    "ack_emulation": False,
    "health_check_interval": 10,
    "socket_connect_timeout": 5,
    # The consumer's only thread may wait this long for an answer, and meanwhile neither takes a message nor notices a
    # broken connection.
    "socket_timeout": 10,
    "socket_keepalive": True,
    "socket_keepalive_options": keepalive_options(),
}


class RunFailed(Exception):
    """The run of an order failed. The text is what Flower shows: ids and the kind of end, never content."""


class RunWithdrawn(Ignore):  # type: ignore[misc]  # Celery has no types
    """The run ended without a result: canceled, given back, or never begun because it was revoked.

    Celery leaves an ignored task as it is, which Flower shows as STARTED forever; `RunRequest` sends `task-revoked`.
    """


class RunReturned(Retry):  # type: ignore[misc]  # Celery has no types
    """The run ended, but its order continues in another one, which has its own id: Flower shows it as RETRY.

    The control plane decides: if it gives the order up, Flower corrects the state.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)

    def __repr__(self) -> str:
        """What Flower shows as the exception."""
        return f"{type(self).__name__}({self.message!r})"


class RunRequest(Request):  # type: ignore[misc]  # Celery has no types
    """Celery's bookkeeping of one message, corrected in three places."""

    def revoked(self) -> bool:
        """Never drop the message: its order would wait forever. A revoked run is begun, and ends at once."""
        if self.id in revoked_runs:
            self.app.slots.revoke(self.id)
        return False

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        """Like Celery's own, but also announce a withdrawn run as revoked."""
        result = super().on_failure(exc_info, send_failed_event=send_failed_event, return_ok=return_ok)
        ended_by = getattr(exc_info.exception, "exc", exc_info.exception)
        if isinstance(ended_by, RunWithdrawn):
            self.send_event("task-revoked", terminated=True, signum="SIGTERM", expired=False)
        return result

    def terminate(self, pool: Any, signal: Any = None) -> None:
        """Ask the run to end; it is announced as revoked when it has ended.

        Celery would free the slot and announce it at once, while the run is still active.
        """
        if self.time_start:
            pool.terminate_job(self.worker_pid, signal)
        else:
            self._terminate_on_ack = pool, signal


class QuickConnection(Connection):  # type: ignore[misc]  # kombu has no types
    """Retries after fractions of a second, at most three seconds; kombu would wait up to thirty."""

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        """Connect, however long that takes."""
        pauses = {"interval_start": 0.2, "interval_step": 0.4, "interval_max": 3.0}
        return super().ensure_connection(*args, **pauses, **options)


class Amqp(AMQP):  # type: ignore[misc]  # Celery has no types
    """Celery's messaging over connections of the kind above."""

    Connection = QuickConnection


@dataclass
class Slots:
    """The pool's interface to the drone."""

    terminate: Callable[[str], None]
    """Ends a run by its id."""
    revoke: Callable[[str], None]
    """Makes a run that is about to begin end at once."""
    paused: bool = False
    """While the drone drains: no message is taken from the queue."""
    leaving: bool = False
    """The same for an ephemeral drone that is about to leave; never undone."""
    most: int | None = None
    """How many orders may be taken in all; None: any number."""
    taken: int = 0
    active: int = 0
    """Messages that are being carried out."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    lacking: Callable[[], str] = field(default=lambda: "")
    """Which disk has too little room for another order; '' while there is enough."""
    withheld: Callable[[], str] = field(default=lambda: "")
    """Why the owner's policy allows no order now; '' while it does."""

    @property
    def spent(self) -> bool:
        """Whether all orders that may be taken were taken."""
        return self.most is not None and self.taken >= self.most

    @property
    def draining(self) -> bool:
        """Whether the drone takes no more orders, for another reason than its disk and its owner's policy."""
        return self.paused or self.leaving or self.spent

    @property
    def closed(self) -> bool:
        """Whether no message may be taken now."""
        return self.draining or bool(self.lacking() or self.withheld())

    def take(self) -> None:
        """Count a message before it is carried out."""
        with self._lock:
            self.taken += 1
            self.active += 1

    def take_back(self) -> None:
        """Do not count a message that was no order of this drone."""
        with self._lock:
            self.taken -= 1

    def free(self) -> None:
        """Count a message that was carried out."""
        with self._lock:
            self.active -= 1


Execute = Callable[[str, str, int, str], str]
"""Order id, run id, generation, envelope: carries the order out and returns how it ended, for Flower.

Raises RunFailed, RunReturned, RunWithdrawn, or Ignore for a copy that must not be run.
"""


def build(  # noqa: PLR0913, PLR0917 - who it is, where its broker is, and what it is to do
    drone_id: str, broker_url: str, concurrency: int, execute: Execute, slots: Slots, ca_file: str = ""
) -> Celery:
    """The application of one drone, with `fleet.run` bound to `execute`; the pool finds `slots` on it.

    `ca_file`: authorities to trust besides the machine's.
    """
    app = Celery("dronefleet", broker=broker_url, set_as_current=False, amqp=Amqp)
    app.slots = slots
    app.conf.update(
        worker_concurrency=concurrency,
        worker_pool="drone.worker.pool:RunPool",
        worker_disable_prefetch=True,
        worker_prefetch_multiplier=1,
        worker_send_task_events=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        task_default_queue=names.queue(drone_id),
        task_acks_late=False,
        task_ignore_result=True,
        accept_content=["json"],
        broker_use_ssl=celery_tls(broker_url, ca_file),
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport=f"{DroneTransport.__module__}:DroneTransport",
        broker_transport_options=TRANSPORT_OPTIONS,
        # Kombu keeps queues that expire alive by scripts, which a drone may not run.
        control_queue_expires=None,
    )
    app.task(execute, name=names.RUN_TASK, Request=f"{RunRequest.__module__}:RunRequest", throws=(RunFailed,))
    return app


def cut_down_remote_control() -> None:
    """Leave only the commands of ALLOWED_COMMANDS: Celery's table is one per process, and so is a drone's worker."""
    for command in set(Panel.data) - ALLOWED_COMMANDS:
        del Panel.data[command]
        Panel.meta.pop(command, None)


class DroneChannel(Channel):  # type: ignore[misc]  # kombu has no types
    """Within the rights of a drone: it writes no bindings, and knows which queues receive broadcasts.

    Bindings are sets that all drones would share. None of them is needed here: the control plane names a drone's queue
    itself, broadcasts go to channels, and answers to them to queues that the asking side has bound.
    """

    def _queue_bind(self, exchange: str, routing_key: str, _pattern: str, queue: str) -> None:
        if self.typeof(exchange).type == "fanout":
            self._fanout_queues[queue] = exchange, routing_key.replace("#", "*")

    def _delete(self, queue: str, *_: Any, **__: Any) -> None:
        # Only a queue for broadcasts is ever deleted, which has neither lists nor bindings.
        self.auto_delete_queues.discard(queue)


class DroneTransport(Transport):  # type: ignore[misc]  # kombu has no types
    """Kombu's Redis transport with these channels."""

    Channel = DroneChannel
