"""From journals into the stream: every event, in order, again where it was asked for, and whatever the broker does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis import Redis

from drone.installation.home import DroneHome
from drone.reporting import journal
from drone.reporting.journal import JournalLine
from drone.reporting.reporter import Reporter
from drone.reporting.stream import Stream
from drone.reporting.uplink import Sealer, connect
from drone.runs.directory import Meta, RunDirectory
from shared import names
from shared.clock import SystemClock
from shared.events import CommentStep, Delta, Event
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn


class InterruptedStream(Stream):
    """The real stream, with an action between the arrival of a batch and the sender's learning of it."""

    def __init__(self, redis: Redis, sealer: Sealer) -> None:
        super().__init__(redis, sealer)
        object.__setattr__(self, "waiting", [])

    waiting: list[Callable[[], object]]

    def send(self, deltas: Sequence[Delta], lines: Sequence[JournalLine]) -> None:
        super().send(deltas, lines)
        if lines and self.waiting:
            self.waiting.pop()()


@dataclass
class Reports:
    """Journals of a drone without runs, and the reporter that sends them."""

    fleet: ControlPlaneStandIn
    directory: Path

    def __post_init__(self) -> None:
        self.home = DroneHome(self.directory / "home")
        self.config = self.fleet.register(self.home)

    @contextmanager
    def reporter(self, while_sending: Callable[[Reporter], None] | None = None) -> Iterator[Reporter]:
        """A reporter; `while_sending` is called once, when a batch has arrived but is not confirmed yet."""
        clock = SystemClock()
        redis = connect(self.home.credentials().broker_url)
        sealer = Sealer(self.config.drone_id, self.home.private_key(), self.config.control_plane_key, clock)
        stream = InterruptedStream(redis, sealer)
        reporter = Reporter(stream, clock)
        if while_sending is not None:
            stream.waiting.append(lambda: while_sending(reporter))
        yield reporter
        reporter.stop()
        redis.close()

    def run(self, reporter: Reporter, texts: str = "") -> RunDirectory:
        """A run that the reporter follows; its journal already has `texts`, one event per letter."""
        made = RunDirectory(self.home.run_dir(names.new_id()))
        made.create(Meta("o" * 12, 1, "b" * 12, datetime.now(UTC).isoformat()))
        record(made, *texts)
        reporter.follow(made)
        return made

    def texts(self, run: RunDirectory) -> list[str]:
        """The texts that arrived from a run, in order of arrival, with duplicates."""
        stream = self.fleet.stream(self.config.drone_id)
        bodies = [each.body for each in stream if isinstance(each, Event) and each.run_id == run.run_id]
        return [body.text for body in bodies if isinstance(body, CommentStep)]


def record(run: RunDirectory, *texts: str) -> None:
    """Append events to a run's journal, as the run's process does."""
    identity = run.identity()
    assert identity is not None
    with journal.opened(run.journal, identity, SystemClock()) as writer:
        for text in texts:
            writer.append(CommentStep(text=text))


@pytest.fixture
def reports(stand_in: ControlPlaneStandIn, tmp_path: Path) -> Reports:
    return Reports(stand_in, tmp_path)


def test_events_of_each_run_arrive_in_order_also_those_recorded_without_a_broker_or_a_reporter(
    reports: Reports,
) -> None:
    with reports.reporter() as reporter:
        runs = [reports.run(reporter, "a"), reports.run(reporter, "a")]
        assert reporter.round()
        reports.fleet.server.stop()
        for run in runs:
            record(run, "b")
        assert not reporter.round()
        for run in runs:
            record(run, "c")
        reports.fleet.server.start()
        assert reporter.round()
        assert [{*reports.texts(run)} for run in runs] == [{*"abc"}] * 2
        assert [sorted(reports.texts(run)) == reports.texts(run) for run in runs] == [True, True]
        known = reports.texts(runs[0])
    record(runs[0], "d")
    # A new boot sends only what was not sent.
    with reports.reporter() as reporter:
        reporter.follow(runs[0])
        assert reporter.round()
        assert reports.texts(runs[0]) == [*known, "d"]


def test_events_are_sent_again_from_the_number_that_was_asked_for_also_within_a_batch(reports: Reports) -> None:
    asked: list[bool] = []
    with reports.reporter(lambda reporter: asked.append(reporter.resend(run.run_id, 1))) as reporter:
        run = reports.run(reporter, "ab")
        assert reporter.round()
        assert (asked, reports.texts(run)) == ([True], [*"abab"])
        assert reporter.resend(run.run_id, 2)
        assert reporter.round()
        assert reports.texts(run) == [*"ababb"]
        assert not reporter.resend("000000000000", 1)


def test_text_in_flight_comes_before_the_event_that_completes_it(reports: Reports) -> None:
    with reports.reporter() as reporter:
        run = reports.run(reporter)
        reporter.delta(Delta(run_id=run.run_id, order_id="o" * 12, kind="text", text="hel"))
        record(run, "hello")
        assert reporter.round()
        wait_until(lambda: reports.fleet.live_kinds(reports.config.drone_id) == ["delta", "event"])


def test_the_thread_sends_what_is_recorded_once_it_is_woken_and_flush_gives_up_without_a_broker(
    reports: Reports,
) -> None:
    with reports.reporter() as reporter:
        run = reports.run(reporter)
        reporter.start()
        record(run, "heard")
        reporter.wake()
        wait_until(lambda: reports.texts(run) == ["heard"])
        reports.fleet.server.stop()
        record(run, "unheard")
        assert not reporter.flush(1)
