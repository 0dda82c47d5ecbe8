"""The runs that this drone tracks: running here, or ended and not yet confirmed by the control plane.

One object per run, shared by the thread that watches its process, the reporter, the heartbeat and the inbox.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from drone.agent.values import WaitsFor
from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.runs.directory import RunDirectory
from drone.runs.pipe import EndRun, ToRun
from drone.runs.stop_requests import Wish, WishKind
from drone.sandbox.resources.limit_values import readable
from shared.clock import Clock
from shared.durations import roughly
from shared.events import Event, RunBeat, RunEnded

Send = Callable[[ToRun], None]
CANCEL_SECONDS = 60.0
"""Time for a run to end its processes and store its work, once it was canceled; then it is killed."""
_MOST_UNWANTED = 1000
UNWANTED_SECONDS = 60.0
"""Time for an unwanted run to end; it has hardly begun."""
MOST_MEMORY = min(4 * 1024**3, psutil.virtual_memory().total // 2)
"""Bytes that a run's own process may occupy, without its commands: ten times what a run of 1,000 steps does, or some
copies of the largest bundle (`shared.blobs.MAX_BYTES`)."""
FAR_TOO_MUCH = 1.5
"""Times `MOST_MEMORY`, above which the process is killed at once."""
OVERGROWN_SECONDS = 120.0
"""Time for an overgrown run to store its work; then it is killed."""
FROZEN_SECONDS = 5.0
"""If a run was not checked for longer than this, the drone itself was not running."""


class TrackedRun:
    """One run as its drone sees it. All methods may be called from any thread."""

    def __init__(self, directory: RunDirectory, identity: RunIdentity, clock: Clock) -> None:
        self.directory = directory
        self.identity = identity
        self._clock = clock
        self._lock = threading.RLock()
        self._send: Send | None = None
        self._waiting: list[ToRun] = []
        self._doing = "starting"
        self._waits_for: WaitsFor = ""
        # Durations by a clock that is never set and that stops while the machine sleeps: the two clocks of the fleet
        # may be hours apart, and a sleep is no lack of progress.
        self._looked_at = self._doing_at = self._moved_at = clock.monotonic()
        self._last_seq = 0
        self._end: RunEnded | None = None
        self._gone = False
        self._confirmed_seq = 0
        self.wish: Wish | None = None
        """Why the run was asked to end, if it was."""
        self._kill_at: float | None = None
        self.title = ""
        """What stands for the order on the owner's screen. Set from the order."""
        self.progress_timeout = 0.0
        """Seconds within which the run must make progress; 0: no limit. Set from the order."""

    @classmethod
    def found(cls, directory: RunDirectory, identity: RunIdentity, clock: Clock) -> TrackedRun:
        """A run of an older boot, whose process is gone."""
        run = cls(directory, identity, clock)
        line = journal.tail(directory.journal)
        if line:
            run.note_event(line.event)
        run._gone = True
        return run

    @property
    def run_id(self) -> str:
        return self.identity.run_id

    @property
    def end(self) -> RunEnded | None:
        """The run's last event, once it was seen in the journal."""
        with self._lock:
            return self._end

    @property
    def settled(self) -> bool:
        """The process is gone, and the control plane has everything up to the last event."""
        with self._lock:
            return self._gone and self._end is not None and self._confirmed_seq >= self._last_seq

    def attach(self, send: Send) -> None:
        """Connect the run to its process and send it the queued messages."""
        with self._lock:
            self._send = send
            waiting, self._waiting = self._waiting, []
            for message in waiting:
                send(message)

    def send(self, message: ToRun) -> None:
        """Send a message to the run's process, now or as soon as it exists; nothing happens if it is gone."""
        with self._lock:
            if self._send is not None:
                self._send(message)
            elif not self._gone:
                self._waiting.append(message)

    def ask_to_end(self, wish: Wish, *, within: float) -> None:
        """Ask the run to end, and have it killed if it has not ended after `within` seconds."""
        with self._lock:
            if wish.outweighs(self.wish):
                self.wish = wish
                self._kill_at = self._clock.monotonic() + within
                self.send(EndRun(wish=wish.kind, reason=wish.reason))

    def was_asked_to(self, *kinds: WishKind) -> bool:
        """Whether the run was asked to end for one of these reasons."""
        with self._lock:
            return self.wish is not None and self.wish.kind in kinds

    def overdue(self) -> bool:
        """Whether the run's time to end is up."""
        with self._lock:
            return self._kill_at is not None and self._clock.monotonic() >= self._kill_at

    def uses(self, memory: int) -> None:
        """Note how many bytes of memory the run's process occupies. If they are too many, it is asked to end."""
        with self._lock:
            if memory > MOST_MEMORY:
                why = f"the run's process used more than {readable(MOST_MEMORY)} of memory"
                self.ask_to_end(Wish("overgrown", why), within=OVERGROWN_SECONDS)
            if memory > MOST_MEMORY * FAR_TOO_MUCH:
                self._kill_at = self._clock.monotonic()

    def does(self, text: str, waits_for: WaitsFor = "") -> None:
        """Note what the run is doing, and what it is waiting for; starting something is progress."""
        with self._lock:
            self._moved_at = self._clock.monotonic()
            self._waits_for = waits_for
            if text != self._doing:
                self._doing, self._doing_at = text, self._moved_at

    def progressed(self) -> None:
        """Note progress of the run: an event, live text, output of a command."""
        with self._lock:
            self._moved_at = self._clock.monotonic()

    def looked_at(self) -> None:
        """Note that the run was checked; call this every second or so while its process exists.

        Time in which this drone itself was stopped does not count against the run.
        """
        with self._lock:
            now = self._clock.monotonic()
            gap, self._looked_at = now - self._looked_at, now
            if gap > FROZEN_SECONDS:
                self._doing_at = min(self._doing_at + gap, now)
                self._moved_at = min(self._moved_at + gap, now)
                if self._kill_at is not None:
                    self._kill_at += gap

    def stalled(self) -> str:
        """A message if the run made no progress for its `progress_timeout`, without a good reason; else ''."""
        with self._lock:
            limit = self.progress_timeout
            if not limit or self._waits_for or self.wish or self._end or self._quiet() < limit:
                return ""
            return f"no progress for {roughly(limit)} during `{self._doing}`"

    def _quiet(self) -> float:
        return max(0.0, self._awake() - self._moved_at)

    def _awake(self) -> float:
        """Now; while the run is not being checked, the time of the last check."""
        now = self._clock.monotonic()
        return now if now - self._looked_at <= FROZEN_SECONDS else self._looked_at

    def note_event(self, event: Event) -> None:
        """Note an event of the run's journal."""
        with self._lock:
            self._last_seq = max(self._last_seq, event.seq)
            if isinstance(event.body, RunEnded):
                self._end = event.body

    def gone(self) -> None:
        """Note that the run's process is gone."""
        with self._lock:
            self._gone = True
            self._send = None

    def confirm(self, last_seq: int) -> None:
        """Note that everything up to `last_seq` is in the database."""
        with self._lock:
            self._confirmed_seq = max(self._confirmed_seq, last_seq)

    def beat(self) -> RunBeat:
        """What the heartbeat says about this run."""
        with self._lock:
            return RunBeat(
                run_id=self.identity.run_id,
                order_id=self.identity.order_id,
                generation=self.identity.generation,
                doing=self._doing,
                doing_seconds=round(max(0.0, self._awake() - self._doing_at), 1),
                quiet_seconds=round(self._quiet(), 1),
                waits_for=self._waits_for,
                last_seq=self._last_seq,
                ended=self._end is not None,
            )


@dataclass(frozen=True)
class _Unwanted:
    """A request to end that a run receives when it is added."""

    wish: Wish
    within: float
    """Seconds within which it must end."""
    generation: int | None = None
    """Of the intended run; None: any."""

    def tell(self, run: TrackedRun) -> None:
        """Ask the run to end, if it is the intended one."""
        if self.generation in {None, run.identity.generation}:
            run.ask_to_end(self.wish, within=self.within)


class TrackedRuns:
    """All runs that the drone tracks, by id."""

    def __init__(self) -> None:
        self._runs: dict[str, TrackedRun] = {}
        self._unwanted: dict[str, _Unwanted] = {}
        self._lock = threading.Lock()

    def add(self, run: TrackedRun) -> None:
        """Add a run to the heartbeats; an unwanted run is asked to end before it begins."""
        with self._lock:
            self._runs[run.run_id] = run
            unwanted = self._unwanted.pop(run.run_id, None)
        if unwanted is not None:
            unwanted.tell(run)

    def refuse(self, run_id: str, reason: str) -> None:
        """Make a run that is about to begin end at once."""
        with self._lock:
            if run_id not in self._runs:
                self._remember(run_id, _Unwanted(Wish("terminate", reason), UNWANTED_SECONDS))

    def cancel(self, run_id: str, generation: int, reason: str) -> None:
        """Ask a run to end, as the control plane wants it."""
        self._end(run_id, _Unwanted(Wish("cancel", reason), CANCEL_SECONDS, generation))

    def terminate(self, run_id: str, reason: str) -> None:
        """Ask a run to end, as somebody wants it who sees only Celery's tasks."""
        self._end(run_id, _Unwanted(Wish("terminate", reason), CANCEL_SECONDS))

    def _end(self, run_id: str, unwanted: _Unwanted) -> None:
        """A run that is not tracked may be claimed at this moment: it is asked when it is added."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is None:
                self._remember(run_id, unwanted)
        if run is not None:
            unwanted.tell(run)

    def _remember(self, run_id: str, unwanted: _Unwanted) -> None:
        self._unwanted[run_id] = unwanted
        # Most of these runs ended long ago and are never added.
        if len(self._unwanted) > _MOST_UNWANTED:
            del self._unwanted[next(iter(self._unwanted))]

    def get(self, run_id: str) -> TrackedRun | None:
        with self._lock:
            return self._runs.get(run_id)

    def all(self) -> list[TrackedRun]:
        with self._lock:
            return list(self._runs.values())

    def working(self) -> list[TrackedRun]:
        """Runs that have not ended yet."""
        return [run for run in self.all() if run.end is None]

    def drop(self, run_id: str) -> None:
        """Remove a run from the heartbeats silently: it has nothing more to report, or it is settled."""
        with self._lock:
            self._runs.pop(run_id, None)

    def settle(self) -> list[TrackedRun]:
        """Stop tracking the runs that the control plane has confirmed: delete their journals, and return the runs."""
        done = [run for run in self.all() if run.settled]
        for run in done:
            self.drop(run.run_id)
            run.directory.forget()
        return done
