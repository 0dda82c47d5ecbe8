"""How long a stream is waited for, and that a run can be stopped whatever arrives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from drone.model.errors import StreamSilent
from drone.model.stream_reader import Waits, pumped
from shared.clock import SystemClock
from shared.errors import Preempted

QUICK = Waits(connect=1.0, first=0.3, between=0.3, alive=1.0)


def _raise() -> None:
    raise Preempted


def _items(pause_s: float, how_many: int = 10_000) -> Iterator[int]:
    for number in range(how_many):
        yield number
        time.sleep(pause_s)


def test_a_stream_that_leaves_no_moment_to_wait_is_checked_all_the_same() -> None:
    with pytest.raises(Preempted):
        list(pumped(lambda: _items(0.001), _raise, QUICK, SystemClock()))


def test_silence_ends_a_stream_unless_it_gives_signs_of_life_and_then_later() -> None:
    clock = SystemClock()

    def waited(signs: Callable[[], int]) -> float:
        """The shorter of two attempts: a machine may stand still during one."""
        took = []
        for _ in range(2):
            began = clock.monotonic()
            with pytest.raises(StreamSilent):
                list(pumped(lambda: _items(2.5, 2), lambda: None, QUICK, clock, signs))
            took.append(clock.monotonic() - began)
        return min(took)

    assert 0.3 < waited(lambda: 0) < 0.9
    assert 1.0 < waited(lambda: round(clock.monotonic() * 100)) < 2.4


def test_signs_of_life_do_not_cut_off_a_stream_that_arrives_in_time() -> None:
    got = list(pumped(lambda: _items(0.15, 4), lambda: None, QUICK, SystemClock(), lambda: 7))
    assert got == [0, 1, 2, 3]
