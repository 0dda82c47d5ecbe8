"""How long a stream is waited for, and that a run can be stopped whatever arrives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from drone.model.errors import StreamSilent
from drone.model.stream_reader import LOOK_UP_EVERY, Waits, pumped
from shared.errors import Preempted
from tests.support.clocks import HandClock

SECONDS = Waits(connect=1, first=3, between=3, alive=10)


class Ticking(HandClock):
    """A clock that goes on by a second with each check, which comes when nothing arrived for a moment."""

    def check(self) -> None:
        self.sleep(1)


@pytest.fixture
def ended() -> Iterator[threading.Event]:
    """Set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def _raise() -> None:
    raise Preempted


def test_a_stream_that_leaves_no_moment_to_wait_is_checked_all_the_same() -> None:
    class Busy(HandClock):
        """A clock that goes on each time it is read."""

        def monotonic(self) -> float:
            self.sleep(LOOK_UP_EVERY)
            return super().monotonic()

    with pytest.raises(Preempted):
        list(pumped(lambda: range(1000), _raise, SECONDS, Busy()))


def test_silence_ends_a_stream_unless_it_gives_signs_of_life_and_then_later(ended: threading.Event) -> None:
    def items() -> Iterator[int]:
        yield 1
        ended.wait()

    def waited(signs: Callable[[HandClock], int]) -> float:
        clock = Ticking()
        with pytest.raises(StreamSilent):
            list(pumped(items, clock.check, SECONDS, clock, lambda: signs(clock)))
        return clock.monotonic()

    assert SECONDS.between < waited(lambda _: 0) < SECONDS.alive
    assert SECONDS.alive < waited(lambda clock: round(clock.monotonic())) < 2 * SECONDS.alive


def test_signs_of_life_do_not_cut_off_a_stream_that_arrives_in_time() -> None:
    clock, due = Ticking(), threading.Semaphore(0)

    def check() -> None:
        clock.check()
        if clock.monotonic() % 2 == 0:
            due.release()

    def items() -> Iterator[int]:
        for number in range(4):
            due.acquire()
            yield number

    assert list(pumped(items, check, SECONDS, clock, lambda: 7)) == [0, 1, 2, 3]
