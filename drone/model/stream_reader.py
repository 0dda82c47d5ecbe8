"""Reads a stream in a separate thread, so that the consumer can be interrupted at any moment.

Why a thread: before the first byte, and between two, a synchronous read cannot be woken. Short read timeouts would
abort the request instead of allowing a check, and not every provider's client lets its sockets be replaced. The cost
is one queue transfer per chunk. An abandoned stream is closed at its next piece at the latest; one that stays silent,
and whose connection is not closed, keeps its daemon thread until the socket's timeout, which blocks nothing, not even
process exit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from drone.model.errors import StreamSilent
from shared.clock import Clock

T = TypeVar("T")

LOOK_UP_EVERY = 0.1
"""Seconds between two checks whether to keep waiting."""


@dataclass(frozen=True)
class Waits:
    """Maximum silence, in seconds."""

    connect: float = 10.0
    first: float = 300.0
    """Until the first piece: a model may think for minutes without output, and a local one has to read the prompt."""
    between: float = 120.0
    """Between two pieces."""
    alive: float = 600.0
    """For any piece, as long as the endpoint gives signs of life: some models think for minutes and show nothing."""


def pumped(
    source: Callable[[], Iterable[T]],
    check: Callable[[], None],
    waits: Waits,
    clock: Clock,
    signs: Callable[[], int] = lambda: 0,
) -> Generator[T, None, None]:
    """Yield the items of `source()`, calling `check` again and again; close this generator to abandon the stream.

    `signs` counts the signs of life so far, such as pings.

    Raises any exception of the source or of `check`, and StreamSilent when nothing is received for too long.
    """
    pump: _Pump[T] = _Pump(source, signs, waits.alive)
    try:
        patience, checked = waits.first, clock.monotonic()
        while (piece := pump.take(patience, check, clock)) is not None:
            patience = waits.between
            # An endpoint that sends something all the time, but no answer, leaves no moment to wait.
            if clock.monotonic() - checked > LOOK_UP_EVERY:
                check()
                checked = clock.monotonic()
            yield piece.value
    finally:
        pump.abandon()


@dataclass(frozen=True)
class _Piece(Generic[T]):
    value: T


class _Pump(Generic[T]):
    """The reading side: fills a queue until the source ends, fails or is abandoned."""

    def __init__(self, source: Callable[[], Iterable[T]], signs: Callable[[], int], alive: float) -> None:
        self._source = source
        self._signs = signs
        self._alive = alive
        self._queue: SimpleQueue[_Piece[T] | BaseException | None] = SimpleQueue()
        self._unwanted = threading.Event()
        threading.Thread(target=self._read, name="model-stream", daemon=True).start()

    def take(self, patience: float, check: Callable[[], None], clock: Clock) -> _Piece[T] | None:
        """Wait for the next piece; None at the end."""
        began = heard = clock.monotonic()
        signs = self._signs()
        while True:
            try:
                item = self._queue.get(timeout=LOOK_UP_EVERY)
            except Empty:
                check()
                now = clock.monotonic()
                if self._signs() != signs:
                    heard, signs = now, self._signs()
                if now - heard > patience or now - began > max(patience, self._alive):
                    raise StreamSilent(f"timed out: no data for {now - began:.0f} s") from None
                continue
            if isinstance(item, BaseException):
                raise item
            return item

    def abandon(self) -> None:
        self._unwanted.set()

    def _read(self) -> None:
        try:
            for value in self._source():
                if self._unwanted.is_set():
                    break
                self._queue.put(_Piece(value))
            self._queue.put(None)
        except BaseException as error:  # noqa: BLE001 - passed on, and raised where the stream is consumed
            self._queue.put(error)
