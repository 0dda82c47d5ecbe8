"""Noticing that the control plane took a run back because its drone was silent for too long: the run must stop."""

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
"""Between the two checks that decide."""
STALE_KILL_SECONDS = 90.0
"""Time for a run whose order another run holds to store its work and push it under a separate name."""


class Takeovers:
    """Checks the keys of the active runs with each beat, and once more separately if one says `revoked`.

    A cancel also writes `revoked`, just before its message: a run therefore counts as taken over only if its key says
    so at two checks, and no message that came meanwhile asked it to end. An absent key proves nothing: Redis may have
    been emptied.
    """

    def __init__(self, redis: Redis, drone_id: str, inbox: Inbox, clock: Clock) -> None:
        self._redis = redis
        self._drone_id = drone_id
        self._inbox = inbox
        self._clock = clock
        self._suspects: dict[TrackedRun, float] = {}
        """Runs whose key said `revoked`, and when that was first seen."""

    def ask(self, pipe: Redis, runs: Iterable[TrackedRun]) -> None:
        """Add one command for each run to a round trip; `note_answers` takes their answers."""
        for run in runs:
            pipe.get(names.run_key(self._drone_id, run.run_id))

    def note_answers(self, runs: Sequence[TrackedRun], keys: Sequence[Any]) -> None:
        """Ask the runs that were taken over to end. Call this after the inbox of the same round trip was read."""
        now = self._clock.monotonic()
        revoked = [run for run, key in zip(runs, keys, strict=True) if _says_revoked(key) and _may_be_stale(run)]
        self._suspects = {run: self._suspects.get(run, now) for run in revoked}
        for run, since in list(self._suspects.items()):
            if now - since >= LOOK_AGAIN_SECONDS:
                del self._suspects[run]
                log.warning("run %s was revoked by the control plane; stopping it without further changes", run.run_id)
                run.ask_to_end(Wish("stale", "another run holds the order"), within=STALE_KILL_SECONDS)

    def suspects(self, run: TrackedRun) -> bool:
        """Whether the run may have been taken over: it must receive nothing that lets it act for its order."""
        return run in self._suspects

    def next_check_s(self) -> float | None:
        """Seconds until the second check is due; None if there is nothing to check."""
        if not self._suspects:
            return None
        return max(0.0, min(self._suspects.values()) + LOOK_AGAIN_SECONDS - self._clock.monotonic())

    def check_again(self) -> None:
        """The second check. Raises redis.exceptions.RedisError: then the next beat checks."""
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
    # A run that was asked to end for another reason ends anyway, and for a push it would need a grant, which it does
    # not get.
    return run.end is None and (run.wish is None or run.was_asked_to("stalled", "overgrown"))
