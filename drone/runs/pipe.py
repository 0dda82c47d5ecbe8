"""The run's end of the pipe to its worker: what it is told, and what it says while it works.

The pipe is also the run's lifeline: when the worker is gone, nobody holds the run's lease, so the run ends at once.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from drone.agent.values import DeltaKind, WaitsFor

EVERY_SECONDS = 0.05
"""Text in flight is sent in pieces of this length."""
MAX_WAITING = 64 * 1000
"""Characters of text in flight that are kept while the worker does not read; what is older is dropped."""
ORPHANED = 4
"""Exit code of a run whose worker is gone."""


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

    def __init__(self, connection: Connection, told: Callable[[dict[str, Any]], None]) -> None:
        self._connection = connection
        self._told = told
        self._lock = threading.Lock()
        self._deltas: list[tuple[DeltaKind, int, str]] = []
        self._doing: tuple[str, WaitsFor] | None = None
        self._recorded = False
        self._moved = False
        self._work = threading.Event()
        self._closing = False
        self._listener = threading.Thread(target=self._listen, name="told", daemon=True)
        self._sender = threading.Thread(target=self._send_all, name="say", daemon=True)

    def start(self) -> None:
        self._listener.start()
        self._sender.start()

    def recorded(self) -> None:
        self._recorded = True
        self._work.set()

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        with self._lock:
            self._doing = text, waits_for
        self._work.set()

    def progress(self) -> None:
        # The sender takes it along when it looks next; nobody waits for it.
        self._moved = True

    def delta(self, kind: DeltaKind, text: str, after_seq: int) -> None:
        with self._lock:
            if self._deltas and self._deltas[-1][:2] == (kind, after_seq):
                text = self._deltas.pop()[2] + text
            self._deltas.append((kind, after_seq, text))
            while sum(len(waiting) for _, _, waiting in self._deltas) > MAX_WAITING and len(self._deltas) > 1:
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
        messages = self._take()
        try:
            for message in messages:
                self._connection.send_bytes(json.dumps(message).encode())
        except OSError:
            # The worker is gone; the listener sees the same and ends this process.
            self._closing = True

    def _take(self) -> list[dict[str, Any]]:
        # Before the texts are taken: an event recorded in between is announced by the next flush, with its own texts.
        recorded, self._recorded = self._recorded, False
        moved, self._moved = self._moved, False
        with self._lock:
            deltas, self._deltas = self._deltas, []
            doing, self._doing = self._doing, None
        messages: list[dict[str, Any]] = [
            {"kind": "delta", "of": kind, "after": after, "text": text} for kind, after, text in deltas
        ]
        if moved:
            messages.append({"kind": "progress"})
        if doing is not None:
            messages.append({"kind": "doing", "text": doing[0], "waits_for": doing[1]})
        if recorded:
            messages.append({"kind": "recorded"})
        return messages

    def _listen(self) -> None:
        try:
            while True:
                self._told(json.loads(self._connection.recv_bytes()))
        except (EOFError, OSError):
            self._told({"kind": "orphaned"})


def end_orphaned(receipt: Path | None = None) -> None:
    """End this run's processes and then the run itself, without a word to anybody: its worker is gone.

    What was ended is left in the file `receipt`, for the worker that comes after.
    """
    from drone.processes.ending import end_all
    from shared.clock import SystemClock

    ended = end_all(at_once=True)
    if receipt is not None:
        with suppress(OSError):
            receipt.write_text(ended.receipt(SystemClock().now()).model_dump_json())
    os._exit(ORPHANED)
