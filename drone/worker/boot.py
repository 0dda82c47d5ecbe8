"""How a boot begins: it ends what an older boot left, verifies that it is the only one with its id, sends what the
older boot recorded and then its hello, before it takes any run."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from redis import Redis
from redis.exceptions import RedisError

from drone.processes.ending import end_marked, end_process
from drone.processes.receipt import Ended
from drone.reporting.stream import Stream, StreamFull
from drone.reporting.uplink import why_unreachable
from drone.runs.directory import Meta, RunDirectory, all_runs
from drone.runs.end_on_behalf import end_on_behalf
from drone.worker.tracked_runs import TrackedRun
from shared import names
from shared.clock import Clock
from shared.errors import Conflict
from shared.events import Hello, Receipt, RunEnded, RunStarted
from shared.outcome import ExitStatus
from shared.states import BEAT_EVERY

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class UnconfirmedRuns:
    """Runs of older boots whose end the control plane may not know."""

    runs: tuple[TrackedRun, ...]

    @property
    def ended(self) -> list[TrackedRun]:
        """The runs that have ended and wait for the control plane's confirmation."""
        return [run for run in self.runs if run.end is not None]


def end_previous_boots(runs_dir: Path, drone_id: str, sandbox: str, clock: Clock) -> UnconfirmedRuns:
    """End all processes of older boots, and return this drone's unconfirmed runs, each with its last event.

    A run that did not end gets a last event on its behalf, with the receipt of its remaining processes: its order may
    be canceled by now and wait for that receipt. If the event cannot be written (a full disk), the hello lists the run
    as not ended, and so it is still lost. Call this before the hello: the runs that it lists must be dead.
    """
    boots: set[str] = set()
    found = []
    for directory in all_runs(runs_dir):
        meta = directory.meta()
        if meta is None or meta.confirmed:
            continue
        boots.add(meta.boot_id)
        receipt = _end(directory, meta, clock)
        if not meta.unconfirmed_of(drone_id):
            # Of a drone that this home was registered as before, maybe with another fleet.
            continue
        for run in _known(directory, clock):
            if run.end is None:
                _write_end(run, meta, sandbox, receipt, clock)
            found.append(run)
    for boot in boots:
        # Processes that outlived both their run and their holder are found by the mark in their environment.
        if survivors := end_marked(boot).found:
            log.warning("stopped %s command processes of an earlier boot", survivors)
    return UnconfirmedRuns(tuple(found))


def _end(directory: RunDirectory, meta: Meta, clock: Clock) -> Receipt:
    """End what is left of the run; the receipt includes what the run ended itself when its worker was gone."""
    # The commands first: their holders are below the run, and would be counted as if they were commands.
    now = end_marked(f"{meta.boot_id}.{directory.run_id}")
    if meta.pid is not None:
        now += end_process(meta.pid, meta.started_at, meta.machine_boot)
    if now.found:
        log.warning("run %s of an earlier boot: stopped %s of %s processes", directory.run_id, now.ended, now.found)
    return _ended_by_itself(directory).then(now).receipt(clock.now())


def _ended_by_itself(directory: RunDirectory) -> Ended:
    """The processes that the run ended itself when its worker was gone, if that happened."""
    with contextlib.suppress(OSError, ValidationError):
        told = Receipt.model_validate_json(directory.orphaned.read_text())
        return Ended(told.found, told.ended, told.survivors)
    return Ended()


def _known(directory: RunDirectory, clock: Clock) -> Iterator[TrackedRun]:
    identity = directory.identity()
    if identity is not None:
        yield TrackedRun.found(directory, identity, clock)


def _write_end(run: TrackedRun, meta: Meta, sandbox: str, receipt: Receipt, clock: Clock) -> None:
    end = RunEnded(
        status="failed",
        exit_status=ExitStatus.LOST,
        reason="the run was lost when the drone restarted",
        receipt=receipt,
        order_at_fault=False,
    )
    started = RunStarted(boot_id=meta.boot_id, sandbox=sandbox)
    try:
        for event in end_on_behalf(run.directory, run.identity, clock, started, [end]):
            run.note_event(event)
    except OSError as error:
        log.error("the end of run %s cannot be written; reporting the run as lost: %s", run.run_id, error)


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
