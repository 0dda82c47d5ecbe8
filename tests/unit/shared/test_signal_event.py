"""An event that is set by a signal at any moment of the wait for it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from shared.signal_event import SignalEvent

INSTRUCTIONS = 30


@pytest.fixture
def event() -> Iterator[SignalEvent]:
    made = SignalEvent()
    before = signal.signal(signal.SIGUSR1, lambda *_: made.set())
    try:
        yield made
    finally:
        signal.signal(signal.SIGUSR1, before)
        made.close()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("instruction", range(1, INSTRUCTIONS))
def test_a_signal_at_any_instruction_of_the_wait_ends_it(event: SignalEvent, instruction: int) -> None:
    seen = 0

    def trace(frame: Any, _event: str, _argument: Any) -> Any:
        nonlocal seen
        frame.f_trace_opcodes = True
        seen += 1
        if seen == instruction:
            os.kill(os.getpid(), signal.SIGUSR1)
        return trace

    # The wait has fewer instructions than that, and then blocks: the signal comes while it is blocked.
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
    assert event.is_set()


def test_it_may_be_set_more_often_than_its_pipe_has_room(event: SignalEvent) -> None:
    for _ in range(70_000):
        event.set()
    event.wait()
