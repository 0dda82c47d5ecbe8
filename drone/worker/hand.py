"""The runs that this drone has in hand: running here, or ended and not yet confirmed by the control plane.

One object per run, shared by the thread that watches its process, the reporter, the heartbeat and the inbox.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from drone.runs import journal
from drone.runs.directory import RunDirectory
from drone.runs.journal import RunIdentity
from shared.clock import Clock
from shared.events import Event, RunBeat, RunEnded

Tell = Callable[[bytes], None]
Asked = Literal["cancel", "stop", "terminate", "stale"]
"""Why a run is to end: the order was canceled, the drone stops, an operator wants it through Flower, or another
generation holds the order."""


class RunInHand:
    """One run as its drone sees it. All methods may be called from any thread."""

    def __init__(self, directory: RunDirectory, identity: RunIdentity, clock: Clock) -> None:
        self.directory = directory
        self.identity = identity
        self._clock = clock
        self._lock = threading.RLock()
        self._tell: Tell | None = None
        self._waiting: list[bytes] = []
        self._doing = "starting"
        self._since = clock.now()
        self._progress_at: datetime | None = None
        self._last_seq = 0
        self._end: RunEnded | None = None
        self._gone = False
        self._confirmed_seq = 0
        self.asked: Asked | None = None
        """Why the run was told to end, if it was."""
        self._kill_at: float | None = None

    @classmethod
    def found(cls, directory: RunDirectory, identity: RunIdentity, clock: Clock) -> RunInHand:
        """A run of an older boot, whose process is gone."""
        run = cls(directory, identity, clock)
        line = journal.tail(directory.journal)
        if line:
            run.saw(line.event)
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

    def attach(self, tell: Tell) -> None:
        """The run's process is there: hand it what was said to the run before."""
        with self._lock:
            self._tell = tell
            waiting, self._waiting = self._waiting, []
            for message in waiting:
                tell(message)

    def tell(self, kind: str, **fields: Any) -> None:
        """Say something to the run's process, now or as soon as there is one; nothing happens if it is gone."""
        message = json.dumps({"kind": kind, **fields}).encode()
        with self._lock:
            if self._tell is not None:
                self._tell(message)
            elif not self._gone:
                self._waiting.append(message)

    def ask_to_end(self, why: Asked, reason: str, *, within: float) -> None:
        """Tell the run to end, and have it killed when it has not after `within` seconds.

        The first word counts, but a cancel replaces a stop: the order of a run that stops goes back to the queue.
        """
        with self._lock:
            if self.asked is None or (self.asked, why) == ("stop", "cancel"):
                self.asked = why
                self._kill_at = self._clock.monotonic() + within
                self.tell(why, reason=reason)

    def overdue(self) -> bool:
        """Whether the time that the run was given to end is up."""
        with self._lock:
            return self._kill_at is not None and self._clock.monotonic() >= self._kill_at

    def does(self, text: str) -> None:
        """Note what the run does now, for the heartbeat."""
        with self._lock:
            if text != self._doing:
                self._doing, self._since = text, self._clock.now()

    def saw(self, event: Event) -> None:
        """Note an event of the run's journal."""
        with self._lock:
            self._last_seq = max(self._last_seq, event.seq)
            self._progress_at = event.at
            if isinstance(event.body, RunEnded):
                self._end = event.body

    def gone(self) -> None:
        """The run's process is no more."""
        with self._lock:
            self._gone = True
            self._tell = None

    def confirm(self, last_seq: int) -> None:
        """Everything up to `last_seq` is in the database."""
        with self._lock:
            self._confirmed_seq = max(self._confirmed_seq, last_seq)

    def beat(self) -> RunBeat:
        """What the heartbeat says of this run."""
        with self._lock:
            return RunBeat(
                run_id=self.identity.run_id,
                order_id=self.identity.order_id,
                generation=self.identity.generation,
                doing=self._doing,
                since=self._since,
                progress_at=self._progress_at,
                last_seq=self._last_seq,
                ended=self._end is not None,
            )


class Hand:
    """All runs in hand, by id."""

    def __init__(self) -> None:
        self._runs: dict[str, RunInHand] = {}
        self._lock = threading.Lock()

    def add(self, run: RunInHand) -> None:
        with self._lock:
            self._runs[run.run_id] = run

    def get(self, run_id: str) -> RunInHand | None:
        with self._lock:
            return self._runs.get(run_id)

    def all(self) -> list[RunInHand]:
        with self._lock:
            return list(self._runs.values())

    def working(self) -> list[RunInHand]:
        """Runs that did not end yet."""
        return [run for run in self.all() if run.end is None]

    def drop(self, run_id: str) -> None:
        """Take a run out of the heartbeats without a word: it fell silent, or it is settled."""
        with self._lock:
            self._runs.pop(run_id, None)

    def settle(self) -> list[RunInHand]:
        """Let go of what the control plane has confirmed: delete its journal, and return those runs."""
        done = [run for run in self.all() if run.settled]
        for run in done:
            self.drop(run.run_id)
            run.directory.forget()
        return done
