"""Messages of runs that are over leave the queues of drones that have not taken them.

A drone drops such a message as soon as it takes it. But one that is switched off takes nothing, and its queue would
seem to hold orders that were canceled, or that went to another drone.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, select

from control_plane.broker.queue_messages import queue_lengths, queued_messages, take_out
from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch
from shared.terminal import logs

log = logs.get(__name__)

READ_AGAIN_SECONDS = 60.0
_AT_ONCE = 50
"""Messages that are read together: each holds a whole sealed order."""
_MOST = 10_000
"""Messages of one queue that a round reads: a drone may have filled its own with anything."""


class StaleMessages:
    """Takes them out. Only queues that hold too many messages are read."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._in_vain: dict[str, float] = {}
        """Drones whose queue was read although nothing could be taken out, and when: not again for a while."""

    def drop(self) -> int:
        """One round over all queues; returns the number of messages that were taken out. Raises Unreachable."""
        expected = self._expected()
        lengths = queue_lengths(self._core.broker, expected)
        full = (drone for drone in expected if lengths[drone] > expected[drone] and self._may_read(drone))
        return sum(each_alone("stale messages", full, self._drop))

    def _expected(self) -> dict[str, int]:
        """How many runs each living drone may still take."""
        open_ones = select(Dispatch.drone_id, func.count()).where(Dispatch.closed_at.is_(None))
        with self._core.database.read() as db:
            drones = db.scalars(select(Drone.id).where(Drone.removed_at.is_(None))).all()
            counted = dict(db.execute(open_ones.group_by(Dispatch.drone_id)).all())
        return {drone: counted.get(drone, 0) for drone in drones}

    def _may_read(self, drone_id: str) -> bool:
        read_at = self._in_vain.get(drone_id)
        return read_at is None or self._core.clock.monotonic() - read_at >= READ_AGAIN_SECONDS

    def _drop(self, drone_id: str) -> int:
        broker, begin, dropped = self._core.broker, 0, 0
        while begin < _MOST and (messages := queued_messages(broker, drone_id, begin, _AT_ONCE)):
            closed = self._closed({message.run_id for message in messages})
            gone = take_out(broker, drone_id, [message for message in messages if message.run_id in closed])
            dropped, begin = dropped + gone, begin + len(messages) - gone
        if dropped:
            self._in_vain.pop(drone_id, None)
            log.info("messages of runs that are over were taken out of a queue", drone=drone_id, messages=dropped)
        else:
            self._in_vain[drone_id] = self._core.clock.monotonic()
        return dropped

    def _closed(self, run_ids: Iterable[str]) -> set[str]:
        """Those of the runs that can no longer begin. An unknown one stays: the database may be an older copy."""
        with self._core.database.read() as db:
            over = select(Dispatch.id).where(Dispatch.id.in_(list(run_ids)), Dispatch.closed_at.is_not(None))
            return set(db.scalars(over))
