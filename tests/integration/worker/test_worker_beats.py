"""A drone's beats on a real broker: a machine that slept, runs that were taken over, and another with the same id."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drone.installation.home import DroneConfig, DroneHome
from drone.installation.settings import DroneSettings
from drone.reporting.journal import RunIdentity
from drone.reporting.stream import Stream
from drone.reporting.uplink import Sealer, connect
from drone.runs.directory import Meta, RunDirectory
from drone.runs.pipe import EndRun, LeaseExtended, ToRun
from drone.runs.stop_requests import Wish
from drone.worker.boot import Introduction
from drone.worker.heartbeat import LOOK_AROUND_SECONDS, Heartbeat, Standing
from drone.worker.identity import begin_boot
from drone.worker.inbox import Inbox
from drone.worker.membership import Membership
from drone.worker.revocation import LOOK_AGAIN_SECONDS, Takeovers
from drone.worker.tracked_runs import TrackedRun, TrackedRuns
from shared import names
from shared.clock import Clock
from shared.control import Cancel, ControlMessage
from shared.errors import Conflict, FleetError
from shared.states import BEAT_EVERY
from tests.support import wait_until
from tests.support.clocks import HandClock
from tests.support.control_stand_in import ControlPlaneStandIn


@dataclass
class Bench:
    """What beats rest on, and a run in hand."""

    fleet: ControlPlaneStandIn
    home: DroneHome
    config: DroneConfig
    clock: Clock
    heard: list[ToRun] = field(default_factory=list)
    left: list[FleetError] = field(default_factory=list)
    """Why this boot ends."""

    def __post_init__(self) -> None:
        self.identity = begin_boot(DroneSettings(self.home, self.home.path / "policy.yaml", "info", os.environ))
        self.redis = connect(self.identity.credentials.broker_url)
        self.sealer = Sealer(self.id, self.identity.private_key, self.config.control_plane_key, self.clock)
        self.inbox = Inbox(self.sealer, self._act)
        self.runs = TrackedRuns()
        run = RunIdentity(names.new_id(), names.new_id(), 1)
        directory = RunDirectory(self.home.run_dir(run.run_id))
        directory.create(Meta(run.order_id, 1, self.identity.boot_id, "2026-11-21T12:00:00+00:00"))
        self.run = TrackedRun(directory, run, self.clock)
        self.run.attach(self.heard.append)
        self.runs.add(self.run)

    @property
    def id(self) -> str:
        return self.config.drone_id

    def beats(self) -> Heartbeat:
        membership = Membership(self.identity, self.clock, self.left.append)
        return Heartbeat(self.redis, self.sealer, self._standing, self.runs, self.inbox, membership)

    def takeovers(self) -> Takeovers:
        return Takeovers(self.redis, self.id, self.inbox, self.clock)

    def revoke(self) -> None:
        self.fleet.broker.revoke_run(self.id, self.run.run_id, 1)

    def cancel(self) -> None:
        message = Cancel(run_id=self.run.run_id, generation=1, reason="enough")
        self.fleet.tell(self.id, ControlMessage(id=names.new_id(), body=message))

    def _act(self, message: ControlMessage) -> None:
        assert isinstance(message.body, Cancel)
        self.run.ask_to_end(Wish("cancel", message.body.reason), within=60)

    def _standing(self) -> Standing:
        return Standing(
            machine_id=self.identity.machine_id,
            boot_id=self.identity.boot_id,
            version="0",
            sandbox="none",
            concurrency=1,
            name="bench",
            warm=True,
            draining=False,
            leaving=False,
        )


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def bench(stand_in: ControlPlaneStandIn, tmp_path: Path, clock: HandClock) -> Iterator[Bench]:
    home = DroneHome(tmp_path / "home")
    made = Bench(stand_in, home, stand_in.register(home), clock)
    yield made
    made.redis.close()


def beats_of(bench: Bench) -> int:
    """The number of beats that arrived."""
    return len(bench.fleet.beats(bench.id))


def after_one(bench: Bench) -> Heartbeat:
    """The heartbeat once its first beat has arrived."""
    beats = bench.beats()
    beats.round()
    wait_until(lambda: beats_of(bench) == 1)
    return beats


def test_a_beat_is_due_every_five_seconds_and_when_it_is_requested(bench: Bench, clock: HandClock) -> None:
    beats = after_one(bench)
    clock.sleep(4.5)
    assert beats.round() == pytest.approx(0.5)
    clock.sleep(0.5)
    beats.round()
    wait_until(lambda: beats_of(bench) == 2)
    beats.soon()
    beats.round()
    wait_until(lambda: beats_of(bench) == 3)
    assert beats.round() == LOOK_AROUND_SECONDS
    assert beats_of(bench) == 3


def test_a_machine_that_wakes_says_so_at_once(bench: Bench, clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    beats = after_one(bench)
    with caplog.at_level(logging.WARNING):
        clock.suspend(3600)
        beats.round()
    assert "the machine was asleep for 3600 s" in caplog.text
    wait_until(lambda: beats_of(bench) == 2)
    assert bench.run.wish is None
    assert bench.run.beat().quiet_seconds < 60


def test_a_mark_counts_unless_a_cancel_follows_or_it_is_gone_at_the_second_look(bench: Bench, clock: HandClock) -> None:
    takeovers = bench.takeovers()
    takeovers.note_answers([bench.run], [b"revoked:1"])
    clock.sleep(LOOK_AGAIN_SECONDS)
    takeovers.check_again()
    assert (bench.run.wish, takeovers.next_check_s()) == (None, None)
    bench.revoke()
    takeovers.note_answers([bench.run], [b"revoked:1"])
    assert takeovers.next_check_s() == LOOK_AGAIN_SECONDS
    bench.cancel()
    clock.sleep(LOOK_AGAIN_SECONDS)
    takeovers.check_again()
    assert bench.run.was_asked_to("cancel")
    assert takeovers.next_check_s() is None


def test_a_run_that_may_have_been_taken_over_gets_no_lease_before_it_is_told(bench: Bench, clock: HandClock) -> None:
    bench.revoke()
    beats = bench.beats()
    beats.round()
    assert bench.heard == []
    # Within one beat of its mark.
    clock.sleep(min(LOOK_AGAIN_SECONDS, BEAT_EVERY.total_seconds()))
    beats.round()
    assert bench.heard[0] == EndRun(wish="stale", reason="another run holds the order")
    assert isinstance(bench.heard[1], LeaseExtended)


# --- another drone with this id ----------------------------------------------------------------------


def twin_beats(bench: Bench) -> None:
    """A copy of the drone on another machine has come, and is alive."""
    alive = f"twin00000000:{bench.clock.now().isoformat()}"
    bench.fleet.broker.redis.mset({names.boot_key(bench.id): "twin00000000", names.lease_key(bench.id): alive})


def test_a_machine_that_comes_back_to_a_copy_of_itself_ends_and_beats_no_more(bench: Bench, clock: HandClock) -> None:
    beats = after_one(bench)
    for _ in range(2):
        assert bench.left == []
        twin_beats(bench)
        clock.sleep(BEAT_EVERY.total_seconds())
        beats.round()
    twin_beats(bench)
    assert [error.what for error in bench.left] == ["another drone is running with this drone's id"]
    clock.sleep(BEAT_EVERY.total_seconds())
    beats.round()
    assert bench.fleet.broker.lease(bench.id).startswith("twin00000000:")


def test_a_broker_that_was_restored_from_an_older_copy_does_not_end_the_drone(bench: Bench, clock: HandClock) -> None:
    beats = after_one(bench)
    twin_beats(bench)
    for _ in range(5):
        clock.sleep(BEAT_EVERY.total_seconds())
        beats.round()
    assert bench.left == []
    assert bench.redis.get(names.boot_key(bench.id)) == bench.identity.boot_id.encode()


def test_a_second_drone_of_the_same_id_refuses_to_work(bench: Bench) -> None:
    class TwinBeats(HandClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            bench.fleet.broker.redis.set(names.lease_key(bench.id), f"twin00000000:{self.now().isoformat()}")

    clock = TwinBeats()
    introduction = Introduction(bench.redis, Stream(bench.redis, bench.sealer), clock, bench.identity.previous_boot)
    clock.sleep(0.0)
    with pytest.raises(Conflict) as refused:
        introduction.make(lambda: None, lambda: pytest.fail("no hello"), threading.Event())
    assert refused.value.code == "E-DRONE-TWICE"
