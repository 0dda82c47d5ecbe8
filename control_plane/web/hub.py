"""One subscription to the broker per process, shared by all open streams: changed orders, and text in flight.

Only the display of text in flight depends on it. While the broker is unavailable, streams poll the database instead.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from anyio import CapacityLimiter
from redis.exceptions import RedisError

from control_plane.core import Core
from control_plane.drones.reports import ReportSender
from control_plane.web.text_in_flight import LiveKeys, Source
from shared import names
from shared.errors import FleetError
from shared.events import Delta
from shared.subscriptions import CheckedSubscription
from shared.terminal import logs

log = logs.get(__name__)
WAITING_DELTAS = 500
"""Pieces of text that may wait for one client; a slower one loses the oldest, and gets the whole message as a step."""
READERS = 8
"""Threads that read for streams, so that a thousand open pages leave the others to people's requests."""
RECONNECT_S = 1.0


ANY_ORDER = "*"
"""A subscription to this receives every change, and no text in flight."""


@dataclass(frozen=True)
class Changes:
    """When an order changed, by the monotonic clock; 0: not since this was last asked."""

    row: float = 0.0
    """More than steps."""
    steps: float = 0.0
    """Steps; with a change of the row, too."""

    @property
    def last(self) -> float:
        return max(self.row, self.steps)


@dataclass(eq=False)
class Subscription:
    """One stream's mailbox: filled from the hub's thread, emptied in the stream's event loop."""

    order_id: str
    """Or `ANY_ORDER`."""
    loop: asyncio.AbstractEventLoop
    source: Source | None = None
    """The source of the order's current text in flight; set by the stream."""
    closing: bool = False
    _deltas: deque[Delta] = field(default_factory=lambda: deque(maxlen=WAITING_DELTAS))
    _changes: Changes = Changes()
    _something: asyncio.Event = field(default_factory=asyncio.Event)
    """A stream with several mailboxes waits for one event of all."""

    def post(self, news: Delta | Changes) -> None:
        """Callable from any thread: a delta arrived, or the order changed before these moments."""
        try:
            self.loop.call_soon_threadsafe(self._take, news)
        except RuntimeError:  # the loop is closed: the server is stopping, and there is no reader any more
            return

    async def wait(self, seconds: float) -> None:
        """Return after at most `seconds`, or as soon as anything arrived."""
        try:
            async with asyncio.timeout(seconds):
                await self._something.wait()
        except TimeoutError:
            pass
        self._something.clear()

    def take_changes(self) -> Changes:
        """When the order changed since this was last asked."""
        changes, self._changes = self._changes, Changes()
        return changes

    def deltas(self) -> list[Delta]:
        """The pieces of text that arrived since the last call; consecutive pieces of one run and kind are joined.

        Pieces with a step between them stay separate, because each is shown in its place.
        """
        joined: list[Delta] = []
        while self._deltas:
            delta = self._deltas.popleft()
            if joined and _continues(joined[-1], delta):
                joined[-1] = delta.model_copy(update={"text": joined[-1].text + delta.text})
            else:
                joined.append(delta)
        return joined

    def _take(self, news: Delta | Changes) -> None:
        if isinstance(news, Delta):
            self._deltas.append(news)
        else:
            self._changes = Changes(news.row or self._changes.row, news.steps or self._changes.steps)
        self._something.set()


class Hub:
    """A thread that listens to the broker and forwards what the open streams want."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._keys = LiveKeys(core)
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="live-hub", daemon=True)
        self._lost = False
        self._closing = False
        self.readers = CapacityLimiter(READERS)
        self.connected = False
        """Whether every change after this moment will be received."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the streams and the thread."""
        self.close_streams()
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def close_streams(self) -> None:
        """End every stream, including one that opens from now on; its client reconnects to a server that is running."""
        self._closing = True
        for subscription in self._all():
            subscription.closing = True
        self._wake_all()

    @contextmanager
    def subscription(self, order_id: str) -> Iterator[Subscription]:
        """A mailbox for changes of this order; open it before reading what is stored, so that no change is missed."""
        subscription = self.subscribe(order_id, asyncio.Event())
        try:
            yield subscription
        finally:
            self.unsubscribe(subscription)

    def subscribe(self, order_id: str, something: asyncio.Event) -> Subscription:
        """As `subscription`, until `unsubscribe`; `something` is set whenever the mailbox receives anything."""
        loop = asyncio.get_running_loop()
        subscription = Subscription(order_id, loop, closing=self._closing, _something=something)
        with self._lock:
            self._subscriptions.setdefault(order_id, set()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Take the mailbox away."""
        with self._lock:
            there = self._subscriptions[subscription.order_id]
            there.discard(subscription)
            if not there:
                del self._subscriptions[subscription.order_id]

    # --- the thread ------------------------------------------------------------------------

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                with self._core.broker.reaching():
                    self._receive()
            except (FleetError, RedisError) as error:
                self._note_lost(error)
            # The body of a background loop: if it ended, every stream would have to poll the database forever.
            except Exception:
                log.exception("unexpected error in the live hub; continuing")
            finally:
                self.connected = False
            self._wake_all()
            self._stop.wait(RECONNECT_S)

    def _note_lost(self, error: Exception) -> None:
        if not self._lost:
            log.warning("live updates are unavailable; streams poll the database", why=str(error))
        self._lost = True

    def _note_connected(self) -> None:
        if self._lost:
            log.info("live updates are available again")
        self._lost, self.connected = False, True
        # Messages published before the server had subscribed us were not received: every stream checks once.
        self._wake_all()

    def _receive(self) -> None:
        pubsub = CheckedSubscription(self._core.broker.redis.connection_pool)
        try:
            pubsub.subscribe(names.ORDER_ROW_CHANGED, names.ORDER_CHANGED)
            pubsub.psubscribe(names.LIVE_PATTERN)
            confirmed = 0
            while not self._stop.is_set():
                message = pubsub.get_message(timeout=0.2)
                if message is None:
                    continue
                if message["type"] in {"subscribe", "psubscribe"}:
                    confirmed += 1
                    if confirmed == 3:
                        self._note_connected()
                else:
                    self._pass_on(message)
        finally:
            pubsub.close()

    def _pass_on(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "message":
            # The same moment for all, so that the first one that reads reads for all.
            now = time.monotonic()
            changes = Changes(row=now) if message["channel"] == names.ORDER_ROW_CHANGED else Changes(steps=now)
            for subscription in (*self._of(message["data"]), *self._of(ANY_ORDER)):
                subscription.post(changes)
        elif message["type"] == "pmessage":
            self._pass_on_live(names.drone_of(message["channel"]), message["data"])

    def _pass_on_live(self, drone_id: str, data: str) -> None:
        """Open a drone's piece of text, if a stream waits for this drone, and pass it to the streams of its order."""
        sources = [each.source for each in self._all() if each.source and each.source.drone_id == drone_id]
        if not sources:
            return
        runs = {source.run_id: drone_id for source in sources if source.run_id}
        sender = ReportSender(drone_id, (sources[0].public_key,), runs.get)
        try:
            message = json.loads(data)
            delta = self._keys.open_delta(sender, message["e"]) if message["t"] == "delta" else None
        except (ValueError, KeyError, TypeError):
            log.warning("invalid message on a live channel", drone=drone_id)
            return
        if delta is None:
            return
        for subscription in self._of(delta.order_id):
            # The drone and the run that the database names, not the ones that the message claims.
            if subscription.source and subscription.source.sends(drone_id, delta.run_id):
                subscription.post(delta)

    def _of(self, order_id: str) -> list[Subscription]:
        with self._lock:
            return list(self._subscriptions.get(order_id, ()))

    def _all(self) -> list[Subscription]:
        with self._lock:
            return [each for group in self._subscriptions.values() for each in group]

    def _wake_all(self) -> None:
        now = time.monotonic()
        for subscription in self._all():
            subscription.post(Changes(row=now, steps=now))


def _continues(earlier: Delta, later: Delta) -> bool:
    """Whether the later piece is the next part of the same text: where a piece was lost, none is joined over it."""
    same = (earlier.run_id, earlier.kind, earlier.after_seq) == (later.run_id, later.kind, later.after_seq)
    return same and (later.offset is None or earlier.offset == later.offset - len(earlier.text))
