"""An event that is set by a signal at any moment of the wait for it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shared.signal_event import SignalEvent

INSTRUCTIONS = 30


@contextmanager
def set_by_signal() -> Iterator[SignalEvent]:
    """An event that a handler sets."""
    made = SignalEvent()
    before = signal.signal(signal.SIGUSR1, lambda *_: made.set())
    try:
        yield made
    finally:
        signal.signal(signal.SIGUSR1, before)
        made.close()


def wait_with_signal_at(event: SignalEvent, instruction: int) -> None:
    seen = 0

    def trace(frame: Any, _event: str, _argument: Any) -> Any:
        nonlocal seen
        frame.f_trace_opcodes = True
        seen += 1
        if seen == instruction:
            os.kill(os.getpid(), signal.SIGUSR1)
        return trace

    # The wait has fewer instructions than the last ones, and then blocks: the signal comes while it is blocked.
    late = threading.Timer(0.2, lambda: seen < instruction and os.kill(os.getpid(), signal.SIGUSR1))
    late.start()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        event.wait()
    finally:
        sys.settrace(before)
        late.cancel()
        late.join()


def test_a_signal_at_any_instruction_of_the_wait_ends_it() -> None:
    for instruction in range(1, INSTRUCTIONS):
        with set_by_signal() as event:
            wait_with_signal_at(event, instruction)
            assert event.is_set(), instruction


def test_it_may_be_set_more_often_than_its_pipe_has_room() -> None:
    with set_by_signal() as event:
        for _ in range(70_000):
            event.set()
        event.wait()
