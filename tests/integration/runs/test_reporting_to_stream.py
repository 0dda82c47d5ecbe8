"""From journals into the stream: every event, in order, again where it was asked for, and whatever the broker does."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.events import Delta
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.runs import Reports, record


@pytest.fixture
def reports(stand_in: ControlPlaneStandIn, tmp_path: Path) -> Reports:
    return Reports(stand_in, tmp_path)


def test_events_of_several_runs_arrive_each_in_its_order_also_those_recorded_while_the_broker_is_away(
    reports: Reports,
) -> None:
    with reports.reporter() as reporter:
        runs = [reports.run(reporter), reports.run(reporter)]
        for run in runs:
            record(run, "before")
        assert reporter.round()
        reports.fleet.server.stop()
        for run in runs:
            record(run, "during")
        assert not reporter.round()
        for run in runs:
            record(run, "still during")
        reports.fleet.server.start()
        assert reporter.round()
        assert reports.texts(runs[0]) == ["before", "during", "still during"] == reports.texts(runs[1])


def test_a_new_boot_sends_only_what_was_not_sent(reports: Reports) -> None:
    with reports.reporter() as reporter:
        run = reports.run(reporter)
        record(run, "sent")
        assert reporter.round()
    record(run, "not sent")
    with reports.reporter() as reporter:
        reporter.follow(run)
        assert reporter.round()
        assert reports.raw_texts(run) == ["sent", "not sent"]


def test_events_are_sent_again_from_the_number_that_was_asked_for(reports: Reports) -> None:
    with reports.reporter() as reporter:
        run = reports.run(reporter)
        for text in "abc":
            record(run, text)
        assert reporter.round()
        assert reporter.resend(run.run_id, 2)
        assert reporter.round()
        assert reports.raw_texts(run) == ["a", "b", "c", "b", "c"]
        assert not reporter.resend("000000000000", 1)


def test_a_resend_that_is_asked_for_in_the_middle_of_a_batch_is_not_forgotten(reports: Reports) -> None:
    asked: list[bool] = []
    with reports.reporter(lambda reporter: asked.append(reporter.resend(run_id_of(reports), 1))) as reporter:
        run = reports.run(reporter, texts="ab")
        assert reporter.round()
        assert asked == [True]
        assert reports.raw_texts(run) == ["a", "b", "a", "b"]


def test_text_in_flight_comes_before_the_event_that_completes_it(reports: Reports) -> None:
    with reports.reporter() as reporter:
        run = reports.run(reporter)
        reporter.delta(Delta(run_id=run.run_id, order_id="o" * 12, kind="text", text="hel"))
        record(run, "hello")
        assert reporter.round()
        wait_until(lambda: reports.live_kinds() == ["delta", "event"])


def test_what_is_recorded_is_sent_by_the_thread_once_it_is_woken(reports: Reports) -> None:
    with reports.reporter() as reporter:
        run = reports.run(reporter)
        reporter.start()
        record(run, "heard")
        reporter.wake()
        wait_until(lambda: reports.texts(run) == ["heard"])


def test_flush_gives_up_when_the_broker_stays_away(reports: Reports) -> None:
    with reports.reporter() as reporter:
        run = reports.run(reporter)
        reports.fleet.server.stop()
        record(run, "unheard")
        reporter.start()
        assert not reporter.flush(1)


def run_id_of(reports: Reports) -> str:
    """The only run of the drone."""
    return next(path.name for path in reports.home.runs_dir.iterdir())
