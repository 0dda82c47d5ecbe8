"""Whether a run makes progress, by a clock that neither a sleep, nor a stop of the drone, nor a set hour disturbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.agent.values import WaitsFor
from drone.reporting.journal import RunIdentity
from drone.runs.directory import Meta, RunDirectory
from drone.runs.stop_requests import Wish, WishKind
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


def test_a_command_of_forty_minutes_that_prints_each_minute_goes_on(run: TrackedRun, clock: HandClock) -> None:
    run.does("shell: make world")
    for _ in range(40):
        pass_watched(run, clock, 60)
        run.progressed()
        assert run.stalled() == ""
    assert (run.beat().doing_seconds, run.beat().quiet_seconds) == (2400, 0)


@pytest.mark.parametrize("whom", ["person", "provider"])
def test_a_run_that_waits_for_somebody_has_not_stalled_and_then_has_its_whole_limit_again(
    run: TrackedRun, clock: HandClock, whom: WaitsFor
) -> None:
    run.does("waiting", whom)
    pass_watched(run, clock, 5 * LIMIT)
    assert run.stalled() == ""
    run.does("waiting for the model")
    pass_watched(run, clock, LIMIT - 1)
    assert run.stalled() == ""


def test_no_limit_is_no_limit(run: TrackedRun, clock: HandClock) -> None:
    run.progress_timeout = 0
    pass_watched(run, clock, 3 * LIMIT)
    assert run.stalled() == ""


def test_a_run_that_was_told_to_end_is_not_told_so_again(run: TrackedRun, clock: HandClock) -> None:
    pass_watched(run, clock, LIMIT)
    run.ask_to_end(Wish("stalled", run.stalled()), within=120)
    assert run.stalled() == ""
    assert run.wish is not None
    assert run.wish.reason.startswith("no progress for 15 min")


def test_a_sleep_of_the_machine_is_no_lack_of_progress(run: TrackedRun, clock: HandClock) -> None:
    run.does("waiting for the model")
    pass_watched(run, clock, 10)
    clock.suspend(8 * 3600)
    run.looked_at()
    assert run.stalled() == ""
    assert run.beat().quiet_seconds == 10


def test_time_in_which_the_drone_was_stopped_is_no_lack_of_progress(run: TrackedRun, clock: HandClock) -> None:
    run.does("waiting for the model")
    pass_watched(run, clock, 10)
    clock.sleep(4 * LIMIT)
    # The heartbeat may be quicker than whoever looks after the run.
    assert run.beat().quiet_seconds == 10
    run.looked_at()
    assert run.stalled() == ""
    assert (run.beat().quiet_seconds, run.beat().doing_seconds) == (10, 10)
    pass_watched(run, clock, LIMIT)
    assert run.stalled() != ""


def test_what_a_run_said_right_after_a_stop_does_not_count_for_the_future(run: TrackedRun, clock: HandClock) -> None:
    pass_watched(run, clock, 10)
    clock.sleep(4 * LIMIT)
    run.progressed()
    run.looked_at()
    pass_watched(run, clock, 20)
    assert run.beat().quiet_seconds == 20


def test_a_run_that_was_told_to_end_gets_its_time_back_after_a_stop(run: TrackedRun, clock: HandClock) -> None:
    run.ask_to_end(Wish("cancel", "enough"), within=60)
    clock.sleep(FROZEN_SECONDS + 60)
    run.looked_at()
    assert not run.overdue()
    pass_watched(run, clock, 60)
    assert run.overdue()


def test_the_beat_says_how_long_and_what_is_waited_for(run: TrackedRun, clock: HandClock) -> None:
    run.does("shell: npm test")
    pass_watched(run, clock, 5)
    run.progressed()
    pass_watched(run, clock, 3)
    run.does("shell: npm test", "person")
    beat = run.beat()
    assert (beat.doing, beat.doing_seconds, beat.quiet_seconds, beat.waits_for) == ("shell: npm test", 8, 0, "person")


def test_an_hour_that_somebody_sets_changes_no_duration(run: TrackedRun, clock: HandClock) -> None:
    run.does("waiting for the model")
    pass_watched(run, clock, 7)
    clock.at = clock.at.replace(year=2031)
    assert (run.beat().doing_seconds, run.beat().quiet_seconds) == (7, 7)
    assert run.stalled() == ""


def test_a_sleep_is_noticed_once_and_time_that_is_awake_never(clock: HandClock) -> None:
    sleeps = Sleeps(clock)
    clock.sleep(3600)
    assert sleeps.since_asked() == 0
    clock.suspend(90)
    assert sleeps.since_asked() == 90
    assert sleeps.since_asked() == 0


@pytest.mark.parametrize(("first", "then", "counts"), [("stop", "stale", "stale"), ("stalled", "cancel", "cancel")])
def test_a_heavier_wish_replaces_a_lighter_one_here_too(
    run: TrackedRun, first: WishKind, then: WishKind, counts: WishKind
) -> None:
    run.ask_to_end(Wish(first, "one"), within=1)
    run.ask_to_end(Wish(then, "two"), within=1)
    run.ask_to_end(Wish(first, "three"), within=1)
    assert run.wish == Wish(counts, "two")
