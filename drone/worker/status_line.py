"""The status line of `drone start`: the worker reports on its stdout, its parent shows the last report."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TextIO

from shared.durations import clock_label
from shared.terminal.output import printable, write

CLEAR = "\r\x1b[K"
"""Empties the terminal's current line."""
EVERY_SECONDS = 1.0


def report(runs: Iterable[dict[str, Any]], *, trouble: str, concurrency: int, paused: bool) -> str:
    """One line of the worker's stdout. `runs`: each as `RunBeat`, and its `title`.

    `trouble`: why the last heartbeat could not be sent; empty if it was.
    """
    return json.dumps({"runs": list(runs), "trouble": trouble, "concurrency": concurrency, "paused": paused}) + "\n"


def can_show(stream: TextIO) -> bool:
    """Whether a line can change in place on this stream."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def show(stream: TextIO, text: str) -> None:
    """Write to a terminal or a reader that may be gone: a drone outlives both."""
    with suppress(OSError):
        write(stream, text)


def tell(text: str) -> None:
    """Write one line for the drone's owner to stderr, as `say` does, if anything still reads it."""
    show(sys.stderr, printable(text) + "\n")


class StatusLine:
    """Shows the worker's last report in the last line of a terminal, with clocks that run between two reports."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._lock = threading.Lock()
        self._report: dict[str, Any] = {}
        self._reported_at = 0.0
        self._over = threading.Event()
        self._painter = threading.Thread(target=self._paint, name="status line", daemon=True)
        self._painter.start()

    def read(self, lines: Iterable[bytes]) -> None:
        """Take in a worker's reports until it ends, in a thread of their own."""
        threading.Thread(target=self._read, args=(lines,), name="reports", daemon=True).start()

    def say(self, text: str) -> None:
        """Write a line that stays above the status line."""
        with self._lock:
            show(self._stream, f"{CLEAR}{printable(text)}\n")

    def stop(self) -> None:
        """Remove the status line."""
        self._over.set()
        self._painter.join()
        show(self._stream, CLEAR)

    def _read(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:
                # Something in the worker's process printed; it is no report.
                continue
            if isinstance(found, dict) and "runs" in found:
                self._report, self._reported_at = found, time.monotonic()
        self._report = {}

    def _paint(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            width = shutil.get_terminal_size().columns
            with self._lock:
                show(self._stream, CLEAR + f"{self._name}: {self._text()}"[: width - 1])

    def _text(self) -> str:
        found = self._report
        if not found:
            return "starting"
        if found["trouble"]:
            return printable(f"not connected, retrying: {found['trouble']}")
        runs = found["runs"]
        if not runs:
            return "takes no orders" if found["paused"] else "waiting for orders"
        first = runs[0]
        seconds = first["doing_seconds"] + time.monotonic() - self._reported_at
        more = f" · and {len(runs) - 1} more" if len(runs) > 1 else ""
        count = f"{len(runs)} of {found['concurrency']} running"
        return printable(
            f"{count}{more} · {first['title']} ({first['order_id']}) · {first['doing']} {clock_label(seconds)}"
        )
