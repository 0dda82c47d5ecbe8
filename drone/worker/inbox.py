"""Control messages of the control plane: each is acted on once, however often and on whichever path it arrives."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from redis import Redis
from redis.client import PubSub
from redis.exceptions import RedisError

from drone.reporting.reporter import Reporter
from drone.reporting.uplink import Sealer
from drone.worker.tracked_runs import TrackedRuns
from shared import names
from shared.control import (
    Cancel,
    Compact,
    Confirm,
    ControlMessage,
    Decide,
    Drain,
    Rename,
    Resend,
    RotateKeys,
    Say,
    Suspend,
    TakeBack,
)
from shared.envelope import CannotOpen
from shared.subscriptions import CheckedSubscription

log = logging.getLogger(__name__)

REMEMBERED = 10_000
"""Message ids kept, so that a pub/sub copy that comes late, or is replayed, has no effect."""
RETRY_SECONDS = 1.0


class Inbox:
    """Opens control messages and acts on each once; reports which may be deleted from the inbox."""

    def __init__(
        self, sealer: Sealer, act: Callable[[ControlMessage], None], last: Mapping[str, Path] | None = None
    ) -> None:
        """`last`: for a kind of message, the file with the time at which the last one that was acted on was issued.

        The files survive restarts. Only these kinds have effects beyond a boot: other messages are about runs, which
        end with their boot, or the control plane confirms them.
        """
        self._last = last or {}
        self._sealer = sealer
        self._act = act
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._waiting: set[str] = set()
        self._refused: set[str] = set()

    def read(self, letters: Mapping[bytes, bytes]) -> None:
        """Act on new messages in the inbox as Redis holds it; messages deleted since need no longer be reported."""
        opened = [letter for envelope in letters.values() if (letter := self._open(envelope)) is not None]
        # Redis keeps them in no order; user messages must be handled in the order in which they were sent.
        for issued_at, message in sorted(opened, key=lambda letter: letter[0]):
            self._act_once(issued_at, message)
        with self._lock:
            present = {name.decode() for name in letters}
            self._waiting = self._seen.keys() & present

    def take(self, envelope: bytes) -> None:
        """Act on one message, unless it was acted on before."""
        letter = self._open(envelope)
        if letter is not None:
            self._act_once(*letter)

    def done(self) -> tuple[str, ...]:
        """Ids of messages that were acted on and are still in the inbox, for the next beat."""
        with self._lock:
            return tuple(sorted(self._waiting))

    def _open(self, envelope: bytes) -> tuple[datetime, ControlMessage] | None:
        """The message and when it was issued; None if we must not act on it."""
        try:
            opened = self._sealer.open(envelope.decode(), "control")
            message = ControlMessage.model_validate_json(opened.body)
            if getattr(message.body, "run_id", "") != opened.binding.run:
                raise CannotOpen("its content is about another run than its envelope")
            return opened.issued_at, message
        except (CannotOpen, ValueError) as error:
            self._refuse(envelope, error)
            return None

    def _act_once(self, issued_at: datetime, message: ControlMessage) -> None:
        with self._lock:
            if message.id in self._seen:
                return
            self._seen[message.id] = None
            self._waiting.add(message.id)
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        kind = message.body.kind
        last = self._last.get(kind)
        if last is None:
            self._act(message)
        elif self._is_replayed(issued_at, last):
            log.warning("a %s message from %s was ignored: one that is not older was acted on", kind, issued_at)
        else:
            self._act(message)
            # After acting: a crash in between repeats the message, which is still in the inbox.
            last.write_text(issued_at.isoformat())

    @staticmethod
    def _is_replayed(issued_at: datetime, last: Path) -> bool:
        with suppress(OSError, ValueError):
            return issued_at <= datetime.fromisoformat(last.read_text())
        return False

    def _refuse(self, envelope: bytes, error: Exception) -> None:
        # Logged once per message, not every five seconds. It stays in the inbox: only its sender can seal it again.
        name = envelope[-32:].decode(errors="replace")
        with self._lock:
            known = name in self._refused
            self._refused.add(name)
        if not known:
            log.error("a control message was rejected: %s", error)


class InboxListener:
    """The thread that receives control messages at once; the inbox in Redis is also read with every beat."""

    def __init__(self, redis: Redis, drone_id: str, inbox: Inbox) -> None:
        self._redis = redis
        self._channel = names.control_channel(drone_id)
        self._inbox = inbox
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inbox", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._subscription() as subscription:
                    subscription.subscribe(self._channel)
                    self._receive(subscription)
            except RedisError:
                # Nothing is lost: messages sent meanwhile are in the inbox. The heartbeat logs that Redis is down.
                self._stop.wait(RETRY_SECONDS)
            except Exception:  # the body of a background loop: one bad message must not end the listening
                log.exception("handling a control message failed; still listening")

    def _subscription(self) -> CheckedSubscription:
        return CheckedSubscription(self._redis.connection_pool, ignore_subscribe_messages=True)

    def _receive(self, subscription: PubSub) -> None:
        while not self._stop.is_set():
            message = subscription.get_message(timeout=1.0)
            if message is not None and message["type"] == "message":
                self._inbox.take(message["data"])


@dataclass(frozen=True)
class ControlActions:
    """Acts on control messages. A message about a run that is not tracked has no effect, except a cancel."""

    runs: TrackedRuns
    reporter: Reporter
    drain: Callable[[bool], None]
    rotate_keys: Callable[[], None]
    rename: Callable[[str], None]

    def act(self, message: ControlMessage) -> None:
        match message.body:
            case Cancel() as cancel:
                self.runs.cancel(cancel.run_id, cancel.generation, cancel.reason)
            case Confirm() as confirm:
                self._confirm(confirm)
            case Resend() as resend:
                self.reporter.resend(resend.run_id, resend.from_seq)
            case Say() | TakeBack() | Decide() | Suspend() | Compact() as word:
                # To the run's process; queued until there is one.
                if run := self.runs.get(word.run_id):
                    run.send(word)
            case Drain() | RotateKeys() | Rename() as change:
                self._change_drone(change)

    def _change_drone(self, change: Drain | RotateKeys | Rename) -> None:
        match change:
            case Drain():
                self.drain(change.on)
            case RotateKeys():
                self.rotate_keys()
            case Rename():
                self.rename(change.name)

    def settle(self) -> None:
        """Stop tracking runs that have ended and are confirmed."""
        for run in self.runs.settle():
            self.reporter.drop(run.run_id)

    def _confirm(self, confirm: Confirm) -> None:
        run = self.runs.get(confirm.run_id)
        if run is not None:
            run.confirm(confirm.last_seq)
            self.settle()
