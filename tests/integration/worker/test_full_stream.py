"""A drone whose stream the control plane does not read pauses, and then sends everything, in order."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from drone.installation.home import DroneHome
from drone.reporting.journal import RunIdentity, opened
from drone.reporting.reporter import Reporter
from drone.reporting.stream import Stream, StreamFull
from drone.reporting.uplink import Sealer, connect
from drone.runs.directory import Meta, RunDirectory
from shared import names
from shared.clock import SystemClock
from shared.events import UserStep
from tests.support.control_stand_in import ControlPlaneStandIn

EVENTS = 40
MAX_BYTES = 1_000_000


def test_a_full_stream_pauses_the_sender_and_nothing_is_lost(
    stand_in: ControlPlaneStandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    home, clock = DroneHome(tmp_path / "home"), SystemClock()
    config = stand_in.register(home)
    run = RunIdentity(names.new_id(), names.new_id(), 1)
    directory = RunDirectory(home.run_dir(run.run_id))
    directory.create(Meta(run.order_id, 1, "boot00000000", "2026-11-21T12:00:00+00:00"))
    with opened(directory.journal, run, clock) as journal:
        for _ in range(EVENTS):
            journal.append(UserStep(text="x" * 100_000))
    redis = connect(home.credentials().broker_url)
    sealer = Sealer(config.drone_id, home.private_key(), config.control_plane_key, clock)
    reporter = Reporter(Stream(redis, sealer, max_bytes=MAX_BYTES), clock)
    reporter.follow(directory)
    key, control = names.events_stream(config.drone_id), stand_in.broker.redis

    with pytest.raises(StreamFull):
        reporter.send_unsent()
    assert not reporter.round()
    assert "sending events is paused" in caplog.text
    assert reporter.stream_full
    assert control.xlen(key) < EVENTS
    assert control.memory_usage(key, samples=0) < 2 * MAX_BYTES
    seen: list[int] = []
    for _ in range(EVENTS):
        for entry_id, event in list(stand_in.stream_after(config.drone_id, "0")):
            seen.append(event.seq)
            control.xdel(key, entry_id)
        reporter.round()
    redis.close()
    assert seen == list(range(1, EVENTS + 1))
    assert not reporter.stream_full
    assert "sending the recorded events again" in caplog.text
