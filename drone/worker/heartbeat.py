"""The thread that reports every five seconds that the drone is alive, its runs, and the messages that it acted on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from redis import Redis
from redis.exceptions import RedisError

from drone.installation.disk import existing
from drone.reporting.uplink import Sealer, why_unreachable
from drone.runs.lease import RunLease
from drone.runs.pipe import LeaseExtended
from drone.worker.inbox import Inbox
from drone.worker.membership import Membership
from drone.worker.revocation import Takeovers
from drone.worker.tracked_runs import TrackedRuns
from shared import names
from shared.clock import Clock, Sleeps
from shared.events import ABILITIES, MAX_COUNT, Beat, MachineUse
from shared.states import BEAT_EVERY, OFFLINE_AFTER

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
LOOK_AROUND_SECONDS = 1.0
"""Interval for checking whether the machine was asleep, while waiting for the next beat."""
_MB = 1_000_000


@dataclass(frozen=True)
class Standing:
    """What a beat says about the drone itself; the runs and the acted-on messages are added."""

    machine_id: str
    boot_id: str
    version: str
    sandbox: str
    concurrency: int
    name: str
    warm: bool
    draining: bool
    leaving: bool
    full: str = ""
    withheld: str = ""
    policy_broken: bool = False
    network: str = ""
    open_network: str = ""
    hours_left_s: float | None = None
    policy_age_s: float | None = None
    stream_full: bool = False
    machine: MachineUse | None = None


class Heartbeat:
    """Sends heartbeats, renews the lease that runs depend on, and reads the inbox in the same round trip."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a beat says, and what it is answered
        self,
        redis: Redis,
        sealer: Sealer,
        standing: Callable[[], Standing],
        runs: TrackedRuns,
        inbox: Inbox,
        membership: Membership,
    ) -> None:
        self._redis = redis
        self._membership = membership
        self._sealer = sealer
        self._clock: Clock = sealer.clock
        self._standing = standing
        self._runs = runs
        self._inbox = inbox
        self.lease = RunLease(self._clock)
        self._takeovers = Takeovers(redis, sealer.drone_id, inbox, self._clock)
        self._sleeps = Sleeps(self._clock)
        self._stop = threading.Event()
        self._now = threading.Event()
        self._next_at = float("-inf")
        self._reachable = True
        self._accepted_at: float | None = None
        self.on_sent: Callable[[str], None] = lambda _: None
        """Called after each attempt, with the reason if the beat could not be sent, else with ''."""
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)

    @property
    def age_s(self) -> float | None:
        """Seconds since the broker accepted a beat; None: it has not accepted any."""
        return None if self._accepted_at is None else self._clock.monotonic() - self._accepted_at

    def start(self) -> None:
        """Start the thread; it sends the first beat at once."""
        self._thread.start()

    def soon(self) -> None:
        """Send the next beat now, because something changed that users are waiting for."""
        self._now.set()

    def stop(self) -> None:
        """Stop sending beats, and announce that in a last one: the drone is offline from now on, not lost."""
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
            rest = self.round()
            # `stop` sets `_stop` before it wakes the thread: a wake-up during this round is not missed.
            if not self._stop.is_set():
                self._now.wait(rest)

    def round(self) -> float:
        """One complete round of the thread: do what is due; returns after how many seconds something may be due again.

        A beat is due every five seconds, when it was requested, and when the machine was asleep; between beats, a
        second look at runs that may have been taken over.
        """
        if slept := self._sleeps.since_asked():
            log.warning("the machine was asleep for %.0f s; sending a heartbeat now", slept)
            # The connections' other ends may be gone, and detecting that would take seconds.
            self._redis.connection_pool.disconnect(inuse_connections=False)
            self._now.set()
        knows = True
        if self._now.is_set() or self._clock.monotonic() >= self._next_at:
            self._now.clear()
            pause = self._beat_once()
            self._next_at = self._clock.monotonic() + pause
        elif self._takeovers.next_check_s() == 0 and not (knows := self._check_takeovers_again()):
            self._next_at = min(self._next_at, self._clock.monotonic() + RETRY_SECONDS)
        rest = min(self._next_at - self._clock.monotonic(), LOOK_AROUND_SECONDS)
        next_check = self._takeovers.next_check_s()
        return max(0.0, rest if next_check is None or not knows else min(rest, next_check))

    def _beat_once(self) -> float:
        """Send a beat, or log why it could not be sent; returns the seconds until the next one is due."""
        try:
            self._send(stopping=False)
        except RedisError as error:
            self._now_reachable(error)
            self._membership.refused(error)
            return RETRY_SECONDS
        except Exception:  # the body of a background loop: a drone without heartbeat would be considered lost
            log.exception("a heartbeat failed; retrying")
        else:
            self._now_reachable(None)
        return BEAT_EVERY.total_seconds()

    def _check_takeovers_again(self) -> bool:
        """Return whether it is now known if runs were taken over; otherwise the next beat checks."""
        try:
            self._takeovers.check_again()
        except RedisError as error:
            log.info("cannot determine yet whether a run was revoked (%s)", error)
            return False
        except Exception:  # part of the body of the loop above, for the same reason
            log.exception("checking the runs' keys failed; retrying")
            return False
        self._renew(self.lease.valid_until)
        return True

    def _renew(self, until: float) -> None:
        """Notify the runs how long they may act for their orders, except those that may have been taken over."""
        for run in self._runs.working():
            if not self._takeovers.suspects(run):
                run.send(LeaseExtended(until=until))

    def _send(self, *, stopping: bool) -> None:
        """One round trip: beat, lease, the inbox, and the keys of the runs that are still active."""
        if self._membership.over:
            return
        drone = self._sealer.drone_id
        working = self._runs.working()
        beat = self._beat(stopping=stopping)
        left_at = self._clock.boottime()
        with self._redis.pipeline(transaction=False) as pipe:
            self._membership.ask(pipe)
            pipe.publish(names.beat_channel(drone), self._sealer.seal("beat", beat.model_dump_json()))
            if stopping:
                pipe.delete(names.lease_key(drone))
            else:
                lease = f"{beat.boot_id}:{beat.sent_at.isoformat()}"
                pipe.set(names.lease_key(drone), lease, ex=int(OFFLINE_AFTER.total_seconds()))
            pipe.hgetall(names.inbox_key(drone))
            self._takeovers.ask(pipe, working)
            boot, lease, _, _, letters, *keys = pipe.execute()
        self._membership.note_answers(boot, lease)
        until = self.lease.renewed(left_at)
        self._inbox.read(letters)
        # Before the lease is passed on: after a silence the run might otherwise push in between.
        self._takeovers.note_answers(working, keys)
        self._renew(until)

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
            name=standing.name,
            warm=standing.warm,
            draining=standing.draining,
            leaving=standing.leaving,
            full=standing.full,
            withheld=standing.withheld,
            policy_broken=standing.policy_broken,
            network=standing.network,
            open_network=standing.open_network,
            hours_left_s=standing.hours_left_s,
            policy_age_s=standing.policy_age_s,
            stream_full=standing.stream_full,
            stopping=stopping,
            machine=standing.machine,
            runs=tuple(run.beat() for run in self._runs.all()),
            done=self._inbox.done(),
            abilities=ABILITIES,
        )

    def _now_reachable(self, error: RedisError | None) -> None:
        why = "" if error is None else why_unreachable(self._redis, error)
        if error is None:
            self._accepted_at = self._clock.monotonic()
        self.on_sent(why)
        if self._reachable != (error is None):
            self._reachable = error is None
            if error is None:
                log.info("heartbeats resumed")
            else:
                log.warning("heartbeats cannot be sent (%s); runs continue", why)


class MachineMeter:
    """How busy this machine is, measured between two calls of `read`, which only one thread makes."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        psutil.cpu_percent()

    def read(self) -> MachineUse:
        """The processors' use since the last call, and the memory and disk in use now."""
        disk = psutil.disk_usage(str(existing(self._workspace)))
        return MachineUse(
            cpu_percent=min(100.0, psutil.cpu_percent()),
            memory_percent=psutil.virtual_memory().percent,
            # File systems over a network may claim more bytes than a heartbeat has room for.
            disk_free_mb=min(MAX_COUNT, disk.free // _MB),
            disk_mb=min(MAX_COUNT, disk.total // _MB),
        )
