"""Whether a run makes progress, by a clock that neither a sleep, nor a stop of the drone, nor a set hour disturbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.reporting.journal import RunIdentity
from drone.runs.directory import Meta, RunDirectory
from drone.runs.stop_requests import Wish
from drone.worker.tracked_runs import FROZEN_SECONDS, TrackedRun
from shared.clock import Sleeps
from tests.support.clocks import HandClock

IDENTITY = RunIdentity("run000000000", "order0000000", 2)
LIMIT = 900.0


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def run(tmp_path: Path, clock: HandClock) -> TrackedRun:
    directory = RunDirectory(tmp_path / "runs" / IDENTITY.run_id)
    directory.create(Meta(IDENTITY.order_id, IDENTITY.generation, "boot00000000", "2026-11-21T12:00:00+00:00"))
    made = TrackedRun(directory, IDENTITY, clock)
    made.progress_timeout = LIMIT
    return made


def pass_watched(run: TrackedRun, clock: HandClock, seconds: float) -> None:
    """Time goes by, and the drone looks after its run all along."""
    for _ in range(round(seconds)):
        clock.sleep(1)
        run.looked_at()


def test_a_run_that_is_quiet_for_its_limit_has_stalled_and_says_at_what(run: TrackedRun, clock: HandClock) -> None:
    run.does("shell: sleep 9999")
    pass_watched(run, clock, LIMIT - 1)
    assert run.stalled() == ""
    pass_watched(run, clock, 1)
    assert run.stalled() == "no progress for 15 min during `shell: sleep 9999`"
    run.progress_timeout = 0
    assert run.stalled() == ""


def test_a_run_that_prints_or_waits_has_not_stalled_and_has_its_whole_limit_again(
    run: TrackedRun, clock: HandClock
) -> None:
    run.does("shell: make world")
    for _ in range(40):
        pass_watched(run, clock, 60)
        run.progressed()
        assert run.stalled() == ""
    assert (run.beat().doing_seconds, run.beat().quiet_seconds) == (2400, 0)
    for whom in ("person", "provider"):
        run.does("waiting", whom)  # type: ignore[arg-type]
        pass_watched(run, clock, 5 * LIMIT)
        assert run.stalled() == ""
        run.does("waiting for the model")
        pass_watched(run, clock, LIMIT - 1)
        assert run.stalled() == ""


def test_neither_a_suspend_nor_a_set_clock_nor_a_stopped_drone_is_a_lack_of_progress(
    run: TrackedRun, clock: HandClock
) -> None:
    run.does("waiting for the model")
    pass_watched(run, clock, 10)
    clock.suspend(8 * 3600)
    clock.at = clock.at.replace(year=2031)
    run.looked_at()
    assert run.stalled() == ""
    clock.sleep(4 * LIMIT)
    # The heartbeat may be quicker than whoever looks after the run.
    assert run.beat().quiet_seconds == 10
    run.looked_at()
    assert run.stalled() == ""
    assert (run.beat().quiet_seconds, run.beat().doing_seconds) == (10, 10)
    pass_watched(run, clock, LIMIT)
    assert run.stalled() != ""


def test_a_run_that_was_told_to_end_gets_its_time_back_after_a_stop(run: TrackedRun, clock: HandClock) -> None:
    run.ask_to_end(Wish("cancel", "enough"), within=60)
    clock.sleep(FROZEN_SECONDS + 60)
    run.looked_at()
    assert not run.overdue()
    pass_watched(run, clock, 60)
    assert run.overdue()


def test_a_sleep_is_noticed_once_and_time_that_is_awake_never(clock: HandClock) -> None:
    sleeps = Sleeps(clock)
    clock.sleep(3600)
    assert sleeps.since_asked() == 0
    clock.suspend(90)
    assert sleeps.since_asked() == 90
    assert sleeps.since_asked() == 0
