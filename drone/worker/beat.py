"""The thread that says every five seconds that the drone is alive, what each run does, and what was acted on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from drone.runs.lease import Lease
from drone.worker.hand import Hand, RunInHand
from drone.worker.inbox import Inbox
from drone.worker.uplink import Sealer
from shared import names
from shared.clock import Clock
from shared.events import Beat
from shared.states import BEAT_EVERY, OFFLINE_AFTER

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
STALE_KILL_SECONDS = 15.0


@dataclass(frozen=True)
class Standing:
    """What a beat says of the drone itself; the runs and the acted-on messages are added."""

    machine_id: str
    boot_id: str
    version: str
    sandbox: str
    concurrency: int
    warm: bool
    draining: bool


class Beats:
    """Sends heartbeats, renews the lease that runs rest on, and reads the inbox in the same round trip."""

    def __init__(
        self, redis: Redis, sealer: Sealer, standing: Callable[[], Standing], hand: Hand, inbox: Inbox
    ) -> None:
        self._redis = redis
        self._sealer = sealer
        self._clock: Clock = sealer.clock
        self._standing = standing
        self._hand = hand
        self._inbox = inbox
        self.lease = Lease(self._clock)
        self._suspects: set[str] = set()
        self._stop = threading.Event()
        self._now = threading.Event()
        self._reachable = True
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)

    def start(self) -> None:
        """The first beat leaves at once."""
        self._thread.start()

    def soon(self) -> None:
        """Send the next beat now, as something changed that people wait for."""
        self._now.set()

    def stop(self) -> None:
        """Send no more beats, and say so in a last one: the drone is offline from now on, not lost."""
        self._stop.set()
        self._now.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        try:
            self._send(stopping=True)
        except RedisError as error:
            log.warning("the last heartbeat could not be sent (%s); the fleet will notice within a minute", error)

    def _run(self) -> None:
        while not self._stop.is_set():
            wait = BEAT_EVERY.total_seconds()
            try:
                self._send(stopping=False)
                self._now_reachable(None)
            except RedisError as error:
                self._now_reachable(error)
                wait = RETRY_SECONDS
            except Exception:  # the body of a background loop: a drone without heartbeat would be given up as lost
                log.exception("a heartbeat failed; trying again")
            self._now.wait(wait)
            self._now.clear()

    def _send(self, *, stopping: bool) -> None:
        """One round trip: beat, lease, the inbox, and the keys of the runs that are still at work."""
        drone = self._sealer.drone_id
        working = self._hand.working()
        beat = self._beat(stopping=stopping)
        left_at = self._clock.boottime()
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.publish(names.beat_channel(drone), self._sealer.seal("beat", beat.model_dump_json()))
            if stopping:
                pipe.delete(names.lease_key(drone))
            else:
                lease = f"{beat.boot_id}:{beat.sent_at.isoformat()}"
                pipe.set(names.lease_key(drone), lease, ex=int(OFFLINE_AFTER.total_seconds()))
            pipe.hgetall(names.inbox_key(drone))
            for run in working:
                pipe.get(names.run_key(drone, run.run_id))
            _, _, letters, *keys = pipe.execute()
        until = self.lease.renewed(left_at)
        for run in working:
            run.tell("lease", until=until)
        self._inbox.read(letters)
        self._notice_revoked(dict(zip(working, keys, strict=True)))

    def _beat(self, *, stopping: bool) -> Beat:
        standing = self._standing()
        return Beat(
            drone_id=self._sealer.drone_id,
            machine_id=standing.machine_id,
            boot_id=standing.boot_id,
            sent_at=self._clock.now(),
            version=standing.version,
            sandbox=standing.sandbox,
            concurrency=standing.concurrency,
            warm=standing.warm,
            draining=standing.draining,
            stopping=stopping,
            runs=tuple(run.beat() for run in self._hand.all()),
            done=self._inbox.done(),
        )

    def _notice_revoked(self, keys: dict[RunInHand, bytes | None]) -> None:
        """Make runs fall silent whose order another generation holds.

        A cancel writes `revoked` too, just before its message: so a run counts as stale only when its key was revoked
        at two beats and nobody has told it to end. An absent key says nothing, as Redis may have been emptied.
        """
        revoked = {run.run_id for run, value in keys.items() if value is not None and value.startswith(b"revoked:")}
        for run in keys:
            if run.run_id in revoked & self._suspects and run.asked is None:
                log.warning("run %s was taken back by the control plane; it ends silently", run.run_id)
                run.ask_to_end("stale", "another run holds the order", within=STALE_KILL_SECONDS)
        self._suspects = revoked

    def _now_reachable(self, error: RedisError | None) -> None:
        if self._reachable != (error is None):
            self._reachable = error is None
            if error is None:
                log.info("heartbeats arrive again")
            else:
                log.warning("heartbeats do not arrive (%s); runs go on", error)
