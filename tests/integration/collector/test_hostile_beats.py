"""Heartbeats and live messages of one drone that no database can store, or that are meant to keep the reader busy.

They silence the drone that sent them, and no other.
"""

from __future__ import annotations

import math
from typing import Any

from structlog.testing import capture_logs

from control_plane.background.leases import Owners
from control_plane.background.timings import Timings
from control_plane.collector.heartbeats import Beats
from control_plane.collector.listener import MAX_MESSAGE, Listener
from control_plane.collector.stream_leases import Streams
from control_plane.db.drones import Drone
from shared import names
from shared.events import MAX_RUNS
from tests.support.planes import Plane
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


def stays_heard(plane: Plane, oka: DroneStandIn, mila: DroneStandIn, **fields: Any) -> None:
    """Wait until a beat of `oka` is stored, that came with the hostile one of `mila`, which is not."""
    oka.boot = names.new_id()

    def both() -> bool:
        mila.forge_beat(**{"boot_id": "hostile", **fields})
        oka.beat()
        return boot_of(plane, oka) == oka.boot

    plane.until(both)
    assert boot_of(plane, mila) is None


def test_a_beat_that_cannot_be_stored_keeps_no_other_out(any_plane: Plane) -> None:
    oka, mila = any_plane.drone("oka"), any_plane.drone("mila")
    any_plane.collector()
    for fields in HOSTILE:
        stays_heard(any_plane, oka, mila, **fields)


def test_a_beat_that_cannot_be_stored_does_not_keep_out_one_that_is_written_with_it(any_plane: Plane) -> None:
    oka, mila, core = any_plane.drone("oka"), any_plane.drone("mila"), any_plane.core
    streams, listener = Streams(core, Owners("only", core.clock, 60.0)), Listener(core, stop_within=0.2)
    any_plane.until(lambda: streams.share() or streams.owned)
    listener.listen()
    mila.forge_beat(boot_id="hostile", concurrency=2**70)
    oka.beat()
    any_plane.until(lambda: listener.listen() or len(listener._beats) == 2)
    Beats(core, streams, listener, Timings()).take()
    assert (boot_of(any_plane, oka), boot_of(any_plane, mila)) == (oka.boot, None)


def test_a_run_in_a_beat_that_cannot_be_stored_keeps_no_other_out(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    order = plane.begun(mila)
    for fields in HOSTILE_RUNS:
        run = {**mila.run_beat(order).model_dump(mode="json"), **fields}
        stays_heard(plane, oka, mila, runs=[run])
    assert plane.order(order.order_id).status == "running"


def test_a_live_message_that_cannot_be_read_does_not_delay_the_beats_of_others(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector()
    with capture_logs() as logged:
        for text in ("[" * 100_000, "{" * 1000, "x", "0" * 2 * MAX_MESSAGE, '{"t": []}'):
            for _ in range(10):
                mila.redis.publish(names.live_channel(mila.id), text)
            oka.boot = names.new_id()
            plane.until(lambda: oka.beat() or boot_of(plane, oka) == oka.boot)
    assert [line for line in logged if line["event"] == "a loop failed"] == []
