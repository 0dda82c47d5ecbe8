"""Eight drones that ask one endpoint through a real control plane: they use what its limit allows, and no more.

The drones and the broker, by whose time permits are decided, have one clock, which a test sets. How much of a limit is
used in real time is measured in tests/bench.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from control_plane.rates.call_log import MINUTE, PART
from tests.support import wait_until
from tests.support.asking_drones import AskingDrone, add_provider, asking, asking_drone, warm_up
from tests.support.clocks import HandClock
from tests.support.fleet import Api
from tests.support.limited_endpoint import LimitedEndpoint, Style

WAITING = "waiting for provider"


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    warm_up()


class WatchedClock(HandClock):
    """The time of another clock; `sleep` lets other threads compute, and returns before the time has come."""

    def __init__(self, watched: HandClock) -> None:
        super().__init__(watched.at)
        self._watched = watched

    def boottime(self) -> float:
        return self._watched.boottime()

    def monotonic(self) -> float:
        return self._watched.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(0.002)


@contextmanager
def eight_drones(api: Api, endpoint: LimitedEndpoint, clock: HandClock, *, rpm: int = 0) -> Iterator[list[AskingDrone]]:
    """Eight drones that ask all the time."""
    add_provider(api, endpoint, rpm=rpm)
    drones = [asking_drone(api, f"drone{n}", endpoint, rpm=rpm, clock=WatchedClock(clock)) for n in range(8)]
    with asking(*drones):
        yield drones
    assert not any(drone.failures for drone in drones)


def wait_until_all_wait(drones: list[AskingDrone], why: str = WAITING) -> None:
    """Wait until every drone waits for a later time: none makes a call before the clock is advanced."""
    wait_until(lambda: all(why in drone.recorder.now_doing for drone in drones), seconds=120)


@pytest.mark.parametrize(("style", "rpm"), [("none", 60), ("openai", 0)], ids=["set", "headers"])
def test_eight_drones_make_the_calls_that_a_limit_allows_in_each_part_and_no_more(
    api: Api, broker_clock: HandClock, style: Style, rpm: int
) -> None:
    with (
        LimitedEndpoint(10_000, 0.001, style, named=60) as endpoint,
        eight_drones(api, endpoint, broker_clock, rpm=rpm) as drones,
    ):
        wait_until_all_wait(drones)
        made = [len(endpoint.arrivals)]
        # The first calls no longer count; they taught the limit if it was not set.
        broker_clock.sleep(MINUTE)
        for number in range(1, 4):
            wait_until(lambda most=made[0] + 10 * number: len(endpoint.arrivals) >= most)
            wait_until_all_wait(drones)
            made.append(len(endpoint.arrivals))
            broker_clock.sleep(PART)
    assert [after - before for before, after in pairwise(made)] == [10, 10, 10]
    assert made[0] == 10 or not rpm
