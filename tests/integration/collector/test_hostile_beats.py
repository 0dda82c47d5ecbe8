"""Beats and events of many drones, and those of one drone that no database can store or that keep the reader busy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event
from structlog.testing import capture_logs

from control_plane.collector.heartbeats import Beats
from control_plane.collector.listener import MAX_MESSAGE, Listener
from control_plane.collector.stream_leases import Streams
from control_plane.core.background.leases import Owners
from control_plane.db.drones import Drone
from shared import names
from shared.events import MAX_RUNS, RunBeat
from tests.support.planes import QUICK, Plane
from tests.support.stand_in import DroneStandIn

HOSTILE: list[dict[str, Any]] = [
    {"concurrency": 2**70},
    {"concurrency": 0},
    {"concurrency": 65},
    {"policy_age_s": math.nan},
    {"policy_age_s": -math.inf},
    {"boot_id": "b" * 65},
    {"version": "v" * 33},
    {"version": "0\0"},
    {"sandbox": "s" * 33},
    {"machine_id": "m" * 129},
    {"full": "f" * MAX_MESSAGE},
    {"runs": [{"run_id": "r", "order_id": "o", "generation": 1, "last_seq": 0}] * (MAX_RUNS + 1)},
]
HOSTILE_RUNS: list[dict[str, Any]] = [
    {"doing_seconds": 1e300},
    {"doing_seconds": math.nan},
    {"quiet_seconds": -math.inf},
    {"last_seq": 2**70},
]


def boot_of(plane: Plane, drone: DroneStandIn) -> str | None:
    boot: str | None = plane.rows(Drone, Drone.id == drone.id)[0].boot_id
    return boot


class BeatsAlone:
    """A collector that takes beats when it is told to, and never reads a stream."""

    def __init__(self, plane: Plane) -> None:
        self._streams = Streams(plane.core, Owners("beats-alone", plane.core.clock, 60.0))
        self._listener = Listener(plane.core, 0.05)
        self._beats = Beats(plane.core, self._streams, self._listener, replace(QUICK, tail_after=0.0))
        self._listener.listen()

    def take(self, drones: Sequence[DroneStandIn], *runs: RunBeat) -> None:
        """Let each drone beat with these runs, and write these beats and what came before together."""
        self._streams.share()
        for drone in drones:
            drone.beat(*runs)
        self._listener.catch_up()
        self._beats.take()


@pytest.mark.dialects
def test_a_beat_that_cannot_be_stored_does_not_keep_out_one_that_is_written_with_it(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    hostile = [(plane.drone(f"hostile-{number}"), fields) for number, fields in enumerate(HOSTILE)]
    placing = plane.supervisor()
    order = plane.claimed(mila)
    plane.stop(placing)
    alone = BeatsAlone(plane)
    for drone, fields in hostile:
        drone.forge_beat(**{"boot_id": "hostile", **fields})
    alone.take([oka])
    written = [fields for drone, fields in hostile if boot_of(plane, drone) is not None]
    assert (boot_of(plane, oka), written) == (oka.boot, [])
    run = mila.run_beat(order).model_dump(mode="json")
    for fields in HOSTILE_RUNS:
        oka.boot = names.new_id()
        mila.forge_beat(boot_id="hostile", runs=[{**run, **fields}])
        alone.take([oka])
        assert (boot_of(plane, oka), boot_of(plane, mila)) == (oka.boot, None), fields


def test_a_live_message_that_cannot_be_read_does_not_delay_the_beats_of_others(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector()
    with capture_logs() as logged:
        for text in ("[" * 100_000, "{" * 1000, "x", "0" * 2 * MAX_MESSAGE, '{"t": []}'):
            for _ in range(3):
                mila.redis.publish(names.live_channel(mila.id), text)
            oka.boot = names.new_id()
            plane.until(lambda: oka.beat() or boot_of(plane, oka) == oka.boot)
    assert [line for line in logged if line["event"] == "a loop failed"] == []


def test_beats_of_many_drones_take_as_many_statements_as_those_of_few(plane: Plane) -> None:
    drones = [plane.drone(f"drone-{number}") for number in range(12)]
    alone, statements, counts = BeatsAlone(plane), list[Any](), []
    event.listen(plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    for part in (drones[:2], drones):
        alone.take(part)
        statements.clear()
        alone.take(part)
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_events_that_wait_in_the_stream_are_not_requested_again_but_lost_ones_are(
    plane: Plane, oka: DroneStandIn
) -> None:
    plane.supervisor()
    order = plane.claimed(oka)
    oka.report(order, oka.started())
    alone = BeatsAlone(plane)
    for _ in range(3):
        alone.take([oka], oka.run_beat(order))
    assert not oka.told("resend")
    plane.core.broker.redis.delete(names.events_stream(oka.id))
    plane.until(lambda: alone.take([oka], oka.run_beat(order)) or oka.told("resend"))
