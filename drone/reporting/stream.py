"""The transport of reporting: events go to the drone's stream and its live channel, live text only to the channel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from drone.reporting.journal import JournalLine
from drone.reporting.uplink import Sealer
from shared import names
from shared.events import Delta, Hello

MAX_STREAM_BYTES = 64 * 1024 * 1024


class StreamFull(RedisError):
    """The control plane has not read so much of this drone's stream that no more events are added for now."""


@dataclass(frozen=True)
class Stream:
    """Sends for one drone. Methods raise redis.exceptions.RedisError if their messages may not have arrived."""

    redis: Redis
    sealer: Sealer
    max_bytes: int = MAX_STREAM_BYTES

    def send(self, deltas: Sequence[Delta], lines: Sequence[JournalLine]) -> None:
        """Send live text and then events, in one round trip and in this order.

        Raises StreamFull, and sends nothing, if there are events to send and the stream holds `max_bytes`.
        """
        if lines:
            self._check_room()
        live = names.live_channel(self.sealer.drone_id)
        with self.redis.pipeline(transaction=False) as pipe:
            for delta in deltas:
                pipe.publish(live, json.dumps({"t": "delta", "e": self._seal_delta(delta)}))
            for line in lines:
                envelope = self._seal_event(line)
                pipe.xadd(names.events_stream(self.sealer.drone_id), {"t": "event", "e": envelope})
                pipe.publish(live, json.dumps({"t": "event", "e": envelope}))
            pipe.execute()

    def hello(self, hello: Hello) -> None:
        """Add a hello to the stream."""
        envelope = self.sealer.seal("hello", hello.model_dump_json())
        self.redis.xadd(names.events_stream(self.sealer.drone_id), {"t": "hello", "e": envelope})

    def _check_room(self) -> None:
        # Every node of the stream is counted: small ones at the beginning must not hide large ones.
        used = self.redis.memory_usage(names.events_stream(self.sealer.drone_id), samples=0)
        if used and int(used) >= self.max_bytes:
            raise StreamFull(f"{used} bytes of events wait for the control plane")

    def _seal_event(self, line: JournalLine) -> str:
        event = line.event
        return self.sealer.seal("event", line.text, order=event.order_id, run=event.run_id, generation=event.generation)

    def _seal_delta(self, delta: Delta) -> str:
        return self.sealer.seal("live", delta.model_dump_json(), order=delta.order_id, run=delta.run_id)
