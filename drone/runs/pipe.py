"""The pipe between a worker and the run that it watches: the messages of each, and both ends.

The pipe is also the run's lifeline: when the worker is gone, no process holds the run's lease, so the run ends at once.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Annotated, Literal, Protocol

from pydantic import Field, TypeAdapter

from drone.agent.values import DeltaKind, WaitsFor
from drone.runs.stop_requests import Wish, WishKind
from shared.control import Compact, Decide, Say, Suspend, TakeBack
from shared.wire import Wire

log = logging.getLogger(__name__)

EVERY_SECONDS = 0.05
"""Live text is sent at this interval."""
MAX_WAITING = 64 * 1000
"""Characters of live text that are kept while the worker does not read; older text is dropped."""
LAST_SECONDS = 5.0
"""Time for the worker's sending thread to notice that the run's process is gone."""


# --- messages of a worker --------------------------------------------------------


class LeaseExtended(Wire):
    """The lease was renewed: the run may act for its order until then, boot time."""

    kind: Literal["lease"] = "lease"
    until: float


class EndRun(Wire):
    """The run is to end, for this reason."""

    kind: Literal["end"] = "end"
    wish: WishKind
    reason: str = ""

    def as_wish(self) -> Wish:
        return Wish(self.wish, self.reason or "the order was canceled")


ToRun = LeaseExtended | EndRun | Say | TakeBack | Decide | Suspend | Compact
"""User messages reach the run as the control plane sent them."""


# --- messages of a run -----------------------------------------------------------


class Recorded(Wire):
    """An event was written to the journal."""

    kind: Literal["recorded"] = "recorded"


class Doing(Wire):
    """What the run is doing, and what it is waiting for."""

    kind: Literal["doing"] = "doing"
    text: str
    waits_for: WaitsFor = ""


class Progress(Wire):
    """Work continues, with nothing to show."""

    kind: Literal["progress"] = "progress"


class InFlight(Wire):
    """Live text, sent after event `after_seq` was recorded."""

    kind: Literal["in_flight"] = "in_flight"
    of: DeltaKind
    text: str
    after_seq: int
    offset: int | None = None


class Probed(Wire):
    """What prevents runs from starting warm; empty if nothing does."""

    kind: Literal["probed"] = "probed"
    problem: str


FromRun = Recorded | Doing | Progress | InFlight | Probed

_TO_RUN: TypeAdapter[ToRun] = TypeAdapter(Annotated[ToRun, Field(discriminator="kind")])
_FROM_RUN: TypeAdapter[FromRun] = TypeAdapter(Annotated[FromRun, Field(discriminator="kind")])


# --- the worker's end ------------------------------------------------------------


class WorkerLink:
    """The worker's end. Sending never waits, and messages arrive in order, however slowly the run reads.

    A run that hangs must block neither the heartbeat nor the inbox, and a user message must not be dropped because the
    run is slow to read. Messages are therefore queued here until the run reads them, or is gone.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._unsent: queue.SimpleQueue[ToRun | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send_all, name="to run", daemon=True)
        self._thread.start()

    def send(self, message: ToRun) -> None:
        self._unsent.put(message)

    def receive(self, seconds: float) -> Iterator[FromRun]:
        """Yield the run's messages, waiting at most `seconds` for the first. Raises EOFError when it is gone."""
        while self._connection.poll(seconds):
            try:
                yield _FROM_RUN.validate_json(self._connection.recv_bytes())
            except ConnectionResetError as error:
                raise EOFError from error
            seconds = 0

    def close(self) -> None:
        """Call this when the process has ended."""
        self._unsent.put(None)
        self._thread.join(LAST_SECONDS)
        self._connection.close()

    def _send_all(self) -> None:
        while (message := self._unsent.get()) is not None:
            try:
                self._connection.send_bytes(message.model_dump_json().encode())
            except (OSError, ValueError):
                # The run is gone, or its end of the pipe is closed: the thread that watches it will report that.
                log.debug("a run is gone; its remaining messages were dropped")
                return


# --- the run's end ---------------------------------------------------------------


class Link(Protocol):
    """Takes the messages of a run that are not events."""

    def recorded(self) -> None:
        """An event was written to the journal."""
        ...

    def delta(self, kind: DeltaKind, text: str, after_seq: int, offset: int | None = None) -> None:
        """Live text, sent after event `after_seq` was recorded; `offset` as in `Delta`."""
        ...

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        """What the run is doing, and what it is waiting for."""
        ...

    def progress(self) -> None:
        """Work continues, with nothing to show."""
        ...


class PipeLink:
    """The link of a run process. Sending never waits for the worker."""

    def __init__(
        self, connection: Connection, receive: Callable[[ToRun], None], worker_gone: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        self._receive = receive
        self._worker_gone = worker_gone
        self._lock = threading.Lock()
        self._deltas: list[InFlight] = []
        self._doing: Doing | None = None
        self._recorded = False
        self._moved = False
        self._work = threading.Event()
        self._closing = False
        self._listener = threading.Thread(target=self._listen, name="receive", daemon=True)
        self._sender = threading.Thread(target=self._send_all, name="send", daemon=True)

    def start(self) -> None:
        self._listener.start()
        self._sender.start()

    def recorded(self) -> None:
        self._recorded = True
        self._work.set()

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        with self._lock:
            self._doing = Doing(text=text, waits_for=waits_for)
        self._work.set()

    def progress(self) -> None:
        # The sender includes it in its next round; it is not urgent.
        self._moved = True

    def delta(self, kind: DeltaKind, text: str, after_seq: int, offset: int | None = None) -> None:
        with self._lock:
            if self._deltas and (self._deltas[-1].of, self._deltas[-1].after_seq) == (kind, after_seq):
                before = self._deltas.pop()
                text, offset = before.text + text, before.offset
            self._deltas.append(InFlight(of=kind, text=text, after_seq=after_seq, offset=offset))
            while sum(len(waiting.text) for waiting in self._deltas) > MAX_WAITING and len(self._deltas) > 1:
                self._deltas.pop(0)

    def close(self) -> None:
        """Send the remaining messages, for up to two seconds."""
        self._closing = True
        self._work.set()
        self._sender.join(timeout=2)

    def _send_all(self) -> None:
        while not self._closing:
            self._work.wait(EVERY_SECONDS)
            self._work.clear()
            self._flush()
        self._flush()

    def _flush(self) -> None:
        """Send live text first, then what came after it: an event must not overtake the text that it completes."""
        try:
            for message in self._unsent():
                self._connection.send_bytes(message.model_dump_json().encode())
        except OSError:
            # The worker is gone; the listener sees the same and ends this process.
            self._closing = True

    def _unsent(self) -> list[FromRun]:
        # Before the texts are taken: an event recorded in between is announced by the next flush, with its own texts.
        recorded, self._recorded = self._recorded, False
        moved, self._moved = self._moved, False
        with self._lock:
            deltas, self._deltas = self._deltas, []
            doing, self._doing = self._doing, None
        messages: list[FromRun] = [*deltas]
        if moved:
            messages.append(Progress())
        if doing is not None:
            messages.append(doing)
        if recorded:
            messages.append(Recorded())
        return messages

    def _listen(self) -> None:
        try:
            while True:
                self._receive(_TO_RUN.validate_json(self._connection.recv_bytes()))
        except (EOFError, OSError):
            self._worker_gone()
