"""Noticing that the control plane took a run back, as its drone was not heard of for too long: the run must stop."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from redis import Redis

from drone.runs.stop_requests import Wish
from drone.worker.inbox import Inbox
from drone.worker.tracked_runs import TrackedRun
from shared import names
from shared.clock import Clock

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 0.8
"""Between the two looks that decide."""
STALE_KILL_SECONDS = 90.0
"""For a run whose order another one holds to store its work and push it under a name of its own."""


class Takeovers:
    """Looks at the keys of the runs at work beside each beat, and once more on its own where one says `revoked`.

    A cancel writes `revoked` too, just before its message: so a run counts as taken over only when its key says so at
    two looks, and no message that came meanwhile told it to end. An absent key says nothing: Redis may have been
    emptied.
    """

    def __init__(self, redis: Redis, drone_id: str, inbox: Inbox, clock: Clock) -> None:
        self._redis = redis
        self._drone_id = drone_id
        self._inbox = inbox
        self._clock = clock
        self._suspects: dict[TrackedRun, float] = {}
        """Runs whose key said `revoked`, and when that was seen first."""

    def ask(self, pipe: Redis, runs: Iterable[TrackedRun]) -> None:
        """Add one command for each run to a round trip; `note_answers` takes their answers."""
        for run in runs:
            pipe.get(names.run_key(self._drone_id, run.run_id))

    def note_answers(self, runs: Sequence[TrackedRun], keys: Sequence[Any]) -> None:
        """Tell the runs to end that were taken over; to be called after the inbox of the same round trip was read."""
        now = self._clock.monotonic()
        revoked = [run for run, key in zip(runs, keys, strict=True) if _says_revoked(key) and _may_be_stale(run)]
        self._suspects = {run: self._suspects.get(run, now) for run in revoked}
        for run, since in list(self._suspects.items()):
            if now - since >= LOOK_AGAIN_SECONDS:
                del self._suspects[run]
                log.warning("run %s was taken back by the control plane; it ends and changes nothing", run.run_id)
                run.ask_to_end(Wish("stale", "another run holds the order"), within=STALE_KILL_SECONDS)

    def suspects(self, run: TrackedRun) -> bool:
        """Whether the run may have been taken over: it is to learn nothing by which it could act for its order."""
        return run in self._suspects

    def next_check_s(self) -> float | None:
        """Seconds until the second look is due; None where there is nothing to look at."""
        if not self._suspects:
            return None
        return max(0.0, min(self._suspects.values()) + LOOK_AGAIN_SECONDS - self._clock.monotonic())

    def check_again(self) -> None:
        """The second look. Raises redis.exceptions.RedisError: then the next beat looks."""
        runs = list(self._suspects)
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hgetall(names.inbox_key(self._drone_id))
            self.ask(pipe, runs)
            letters, *keys = pipe.execute()
        self._inbox.read(letters)
        self.note_answers(runs, keys)


def _says_revoked(key: Any) -> bool:
    return isinstance(key, bytes) and key.startswith(b"revoked:")


def _may_be_stale(run: TrackedRun) -> bool:
    # Whoever was told to end for another reason ends anyhow, and to push it would need a grant that it does not get.
    return run.end is None and (run.wish is None or run.was_asked_to("stalled"))
