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

from control_plane.money.rates.call_log import MINUTE, PART
from tests.support import wait_until
from tests.support.asking_drones import AskingDrone, add_provider, asking, asking_drone, warm_up
from tests.support.clocks import HandClock
from tests.support.fleet import Api
from tests.support.limited_endpoint import LimitedEndpoint

WAITING = "waiting for provider"


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    warm_up()


class WatchedClock(HandClock):
    """The time of another clock; `sleep` lets other threads compute, and returns before the time has come."""

    def __init__(self, watched: HandClock) -> None:
        super().__init__(watched.at)
        self._watched = watched
        self.slept = 0

    def boottime(self) -> float:
        return self._watched.boottime()

    def monotonic(self) -> float:
        return self._watched.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(0.01)
        self.slept += 1


@contextmanager
def eight_drones(api: Api, endpoint: LimitedEndpoint, clock: HandClock) -> Iterator[list[AskingDrone]]:
    """Eight drones that ask all the time."""
    add_provider(api, endpoint)
    drones = [asking_drone(api, f"drone{n}", endpoint, clock=WatchedClock(clock)) for n in range(8)]
    with asking(*drones):
        yield drones
    assert not any(drone.failures for drone in drones)


def sleeps(drones: list[AskingDrone]) -> list[int]:
    """How often each drone has slept; one that makes a call does not sleep meanwhile."""
    return [drone.permits.clock.slept for drone in drones if isinstance(drone.permits.clock, WatchedClock)]


def sleep_again(drones: list[AskingDrone]) -> None:
    """Wait until every drone has slept twice more, and so has asked in vain in between."""
    before = sleeps(drones)
    wait_until(lambda: all(now >= then + 2 for now, then in zip(sleeps(drones), before, strict=True)), seconds=120)


def settled(drones: list[AskingDrone], endpoint: LimitedEndpoint) -> int:
    """The calls that were made once every drone waits for a later time: none makes another before the clock advances.

    A permit that was granted is no call yet: the drone that has it does not sleep before its call has been answered. So
    there are two rounds: in the first, every drone asks in vain, or has made its call by the end of the second.
    """
    while True:
        made = len(endpoint.arrivals)
        for _ in range(2):
            sleep_again(drones)
        if len(endpoint.arrivals) == made and all(WAITING in drone.recorder.now_doing for drone in drones):
            return made


def test_eight_drones_make_the_calls_that_a_limit_in_headers_allows_in_each_part_and_no_more(
    api: Api, broker_clock: HandClock
) -> None:
    with (
        LimitedEndpoint(10_000, 0.001, "openai", named=60) as endpoint,
        eight_drones(api, endpoint, broker_clock) as drones,
    ):
        made = [settled(drones, endpoint)]
        # The first calls no longer count; they taught the limit.
        broker_clock.sleep(MINUTE)
        for _ in range(2):
            made.append(settled(drones, endpoint))
            broker_clock.sleep(PART)
    assert [after - before for before, after in pairwise(made)] == [10, 10]
