"""How a drone comes back: it verifies that it is the only one with its id, sends what an older boot recorded, and sends
its hello, before it takes any run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from redis import Redis
from redis.exceptions import RedisError

from drone.reporting.stream import Stream, StreamFull
from drone.reporting.uplink import why_unreachable
from shared import names
from shared.clock import Clock
from shared.errors import Conflict
from shared.events import Hello
from shared.states import BEAT_EVERY

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
LOOK_SECONDS = 0.5


class Introduction:
    """Checks whether another drone beats under this id, then sends unsent events, and then the hello.

    In this order, because the hello takes the older boot's runs back: their steps must be in the stream before it.
    Waits for Redis indefinitely.
    """

    def __init__(
        self,
        redis: Redis,
        stream: Stream,
        clock: Clock,
        previous_boot: str,
        on_error: Callable[[RedisError], None] = lambda _: None,
    ) -> None:
        """`previous_boot`: the last boot of this same drone on this same machine; empty if there was none.

        `on_error` is called for each failed attempt.
        """
        self._redis = redis
        self._stream = stream
        self._clock = clock
        self._key = names.lease_key(stream.sealer.drone_id)
        self._previous_boot = previous_boot
        self._on_error = on_error

    def make(self, unsent: Callable[[], None], hello: Callable[[], Hello], stopping: threading.Event) -> bool:
        """Return True once the hello is in the stream, False if the drone was stopped before.

        `unsent` puts the events of older boots into the stream, and may be called again after a RedisError. Raises
        Conflict while another drone beats under this id.
        """
        told = False
        while not stopping.is_set():
            try:
                self._refuse_to_be_second(stopping)
                unsent()
                self._stream.hello(hello())
                return True
            except RedisError as error:
                if isinstance(error, StreamFull):
                    log.warning("waiting to send older events: %s", error)
                elif not told:
                    log.warning("the broker does not answer yet (%s); retrying", why_unreachable(self._redis, error))
                told = True
                self._on_error(error)
                stopping.wait(RETRY_SECONDS)
        return False

    def _refuse_to_be_second(self, stopping: threading.Event) -> None:
        """A lease that another boot holds was either left by a crash, or is renewed within one beat: wait and see."""
        first = self._lease()
        if first is None or first.partition(":")[0] == self._previous_boot:
            return
        deadline = self._clock.monotonic() + BEAT_EVERY.total_seconds() + 2.0
        while self._clock.monotonic() < deadline and not stopping.is_set():
            self._clock.sleep(LOOK_SECONDS)
            if (now := self._lease()) is None:
                return
            if now != first:
                raise Conflict(
                    "another drone is running with this drone's id",
                    code="E-DRONE-TWICE",
                    why=f"its boot is {now.partition(':')[0]}; a drone's home must not be copied to another machine",
                    next="drone register --url URL --token TOKEN --name ANOTHER-NAME    with an empty DRONE_HOME",
                )

    def _lease(self) -> str | None:
        value = self._redis.get(self._key)
        return value.decode() if isinstance(value, bytes) else None
