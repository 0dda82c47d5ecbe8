"""The pipe between a worker and the run that it watches: the messages of each, and both ends.

The pipe is also the run's lifeline: when the worker is gone, nobody holds the run's lease, so the run ends at once.
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
from shared.control import Compact, Decide, Say
from shared.wire import Wire

log = logging.getLogger(__name__)

EVERY_SECONDS = 0.05
"""Text in flight is sent in pieces of this length."""
MAX_WAITING = 64 * 1000
"""Characters of text in flight that are kept while the worker does not read; what is older is dropped."""
LAST_SECONDS = 5.0
"""For the worker's sending thread to notice that the run's process is gone."""


# --- what a worker says ----------------------------------------------------------


class LeaseExtended(Wire):
    """The drone was heard of: the run may act for its order until then, boot time."""

    kind: Literal["lease"] = "lease"
    until: float


class EndRun(Wire):
    """The run is to end, for this reason."""

    kind: Literal["end"] = "end"
    wish: WishKind
    reason: str = ""

    def as_wish(self) -> Wish:
        return Wish(self.wish, self.reason or "the order was canceled")


ToRun = LeaseExtended | EndRun | Say | Decide | Compact
"""People's words reach the run as the control plane sent them."""


# --- what a run says -------------------------------------------------------------


class Recorded(Wire):
    """An event was written to the journal."""

    kind: Literal["recorded"] = "recorded"


class Doing(Wire):
    """What the run does now, and what it waits for."""

    kind: Literal["doing"] = "doing"
    text: str
    waits_for: WaitsFor = ""


class Progress(Wire):
    """Something continues of which there is nothing to show."""

    kind: Literal["progress"] = "progress"


class InFlight(Wire):
    """Text in flight, said after event `after_seq` was recorded."""

    kind: Literal["in_flight"] = "in_flight"
    of: DeltaKind
    text: str
    after_seq: int


class Probed(Wire):
    """What keeps runs from starting warm; empty where nothing does."""

    kind: Literal["probed"] = "probed"
    problem: str


FromRun = Recorded | Doing | Progress | InFlight | Probed

_TO_RUN: TypeAdapter[ToRun] = TypeAdapter(Annotated[ToRun, Field(discriminator="kind")])
_FROM_RUN: TypeAdapter[FromRun] = TypeAdapter(Annotated[FromRun, Field(discriminator="kind")])


# --- the worker's end ------------------------------------------------------------


class WorkerLink:
    """The worker's end. Sending never waits, and what was sent arrives in order, however slowly the run reads.

    A run that hangs must make neither the heartbeat nor the inbox hang, and a person's word must not be dropped because
    the run was slow to read: so messages queue up here until it reads, or is gone.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._unsent: queue.SimpleQueue[ToRun | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send_all, name="to run", daemon=True)
        self._thread.start()

    def send(self, message: ToRun) -> None:
        self._unsent.put(message)

    def receive(self, seconds: float) -> Iterator[FromRun]:
        """Yield what the run says, waiting at most `seconds` for the first. Raises EOFError when it is gone."""
        while self._connection.poll(seconds):
            try:
                yield _FROM_RUN.validate_json(self._connection.recv_bytes())
            except ConnectionResetError as error:
                raise EOFError from error
            seconds = 0

    def close(self) -> None:
        """To be called when the process has ended."""
        self._unsent.put(None)
        self._thread.join(LAST_SECONDS)
        self._connection.close()

    def _send_all(self) -> None:
        while (message := self._unsent.get()) is not None:
            try:
                self._connection.send_bytes(message.model_dump_json().encode())
            except (OSError, ValueError):
                # It is gone, or its end of the pipe is closed: the thread that watches it will say so.
                log.debug("a run is gone and was not told any more")
                return


# --- the run's end ---------------------------------------------------------------


class Link(Protocol):
    """Where a run says what is not an event."""

    def recorded(self) -> None:
        """An event was written to the journal."""
        ...

    def delta(self, kind: DeltaKind, text: str, after_seq: int) -> None:
        """Text in flight, said after event `after_seq` was recorded."""
        ...

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        """What the run does now, and what it waits for."""
        ...

    def progress(self) -> None:
        """Something goes on of which there is nothing to show."""
        ...


class PipeLink:
    """The link of a run process. Saying something never waits for the worker."""

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
        # The sender takes it along when it looks next; nobody waits for it.
        self._moved = True

    def delta(self, kind: DeltaKind, text: str, after_seq: int) -> None:
        with self._lock:
            if self._deltas and (self._deltas[-1].of, self._deltas[-1].after_seq) == (kind, after_seq):
                text = self._deltas.pop().text + text
            self._deltas.append(InFlight(of=kind, text=text, after_seq=after_seq))
            while sum(len(waiting.text) for waiting in self._deltas) > MAX_WAITING and len(self._deltas) > 1:
                self._deltas.pop(0)

    def close(self) -> None:
        """Say what there is left to say, and let the worker know that nothing follows."""
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
        """Send text in flight first, then what came after it: an event must not overtake the text that it completes."""
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
