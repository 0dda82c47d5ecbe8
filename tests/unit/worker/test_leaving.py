"""When an ephemeral drone gives up waiting for the broker."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from drone.reporting.journal import RunIdentity
from drone.runs.directory import RunDirectory
from drone.worker.app import Slots
from drone.worker.leave_rule import LeaveRule
from drone.worker.leaving import INTRODUCTION_SECONDS, Leaving
from drone.worker.parent import is_final
from drone.worker.tracked_runs import TrackedRun, TrackedRuns
from shared.errors import Conflict, Unreachable
from tests.support.clocks import HandClock


class After(threading.Event):
    """Set after some time of a clock."""

    def __init__(self, clock: HandClock, seconds: float) -> None:
        super().__init__()
        self._clock, self._seconds = clock, seconds

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.sleep(60)
        return self._clock.monotonic() >= self._seconds


def is_introduced(after_s: float, *, idle_s: int = 10, runs: TrackedRuns | None = None) -> bool:
    """Whether a drone that the broker serves after this time waits for it; raises Unreachable if it gives up."""
    clock = HandClock()
    leaving = Leaving(LeaveRule(idle_s), Slots(print, print), runs or TrackedRuns(), clock)
    return leaving.wait_for(After(clock, after_s), threading.Event())


def test_a_drone_that_the_broker_does_not_serve_gives_up_unless_it_has_runs_to_report(tmp_path: Path) -> None:
    assert is_introduced(INTRODUCTION_SECONDS - 60)
    with pytest.raises(Unreachable) as gave_up:
        is_introduced(INTRODUCTION_SECONDS + 60)
    assert gave_up.value.code == "E-BROKER-UNREACHABLE"
    assert is_introduced(3000, idle_s=3600), "it may have nothing to do for longer"
    runs = TrackedRuns()
    runs.add(TrackedRun(RunDirectory(tmp_path), RunIdentity("run000000000", "order0000000", 1), HandClock()))
    assert is_introduced(3000, runs=runs)


def test_a_drone_leaves_after_its_number_of_orders_to_which_a_skipped_message_does_not_count() -> None:
    clock, slots = HandClock(), Slots(print, print, most=1)
    leaving = Leaving(LeaveRule(600, 1), slots, TrackedRuns(), clock)

    def leaves() -> bool:
        leaving.watch(After(clock, clock.monotonic() + 120), lambda: None)
        return leaving.decided

    slots.take()
    assert not leaves()
    slots.take_back(), slots.free()
    assert not leaves(), "it was a copy"
    slots.take(), slots.free()
    assert leaves()


def test_only_an_ephemeral_drone_is_not_started_again_without_a_broker() -> None:
    rule = LeaveRule(10)
    cases = [(Unreachable.exit_code, rule), (Unreachable.exit_code, None), (Conflict.exit_code, None), (1, rule)]
    assert [is_final(code, each) for code, each in cases] == [True, False, True, False]
