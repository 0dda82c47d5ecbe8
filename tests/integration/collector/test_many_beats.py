"""Beats of many drones, and beats while the collector is behind with the streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import event

from control_plane.background.leases import Owners
from control_plane.collector.heartbeats import Beats
from control_plane.collector.listener import Listener
from control_plane.collector.stream_leases import Streams
from control_plane.db.drones import Drone
from shared import names
from shared.events import RunBeat
from tests.support.planes import QUICK, Plane
from tests.support.stand_in import DroneStandIn


class BeatsAlone:
    """A collector that takes beats when it is told to, and never reads a stream."""

    def __init__(self, plane: Plane) -> None:
        self._streams = Streams(plane.core, Owners("beats-alone", plane.core.clock, 60.0))
        self._listener = Listener(plane.core, 0.05)
        self._beats = Beats(plane.core, self._streams, self._listener, replace(QUICK, tail_after=0.0))
        self._listener.listen()

    def take(self, drones: Sequence[DroneStandIn], *runs: RunBeat) -> None:
        """Let each drone beat with these runs, and write these beats together."""
        self._streams.share()
        for drone in drones:
            drone.beat(*runs)
        self._listener.catch_up()
        self._beats.take()


def test_beats_of_many_drones_take_as_many_statements_as_those_of_few(any_plane: Plane) -> None:
    drones = [any_plane.drone(f"drone-{number}") for number in range(12)]
    alone, statements = BeatsAlone(any_plane), list[Any]()
    event.listen(any_plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    counts = []
    for part in (drones[:2], drones):
        alone.take(part)
        statements.clear()
        alone.take(part)
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_events_that_wait_in_the_stream_are_not_requested_again_but_lost_ones_are(plane: Plane) -> None:
    oka = plane.drone()
    plane.supervisor()
    plane.submit()
    order = plane.until(oka.take)
    assert oka.claim(order)
    oka.report(order, oka.started())
    alone = BeatsAlone(plane)
    for _ in range(3):
        alone.take([oka], oka.run_beat(order))
    assert not oka.told("resend")
    plane.core.broker.redis.delete(names.events_stream(oka.id))
    plane.until(lambda: alone.take([oka], oka.run_beat(order)) or oka.told("resend"))


def test_beats_that_arrive_one_after_the_other_are_written_together(plane: Plane) -> None:
    drones = [plane.drone(f"drone-{number}", online=False) for number in range(12)]
    plane.collector()
    writes = list[str]()
    event.listen(plane.core.database.engine, "before_cursor_execute", lambda *given: writes.append(given[2]))
    for drone in drones:
        drone.beat()
    plane.round()
    assert all(drone.last_seen_at for drone in plane.rows(Drone))
    assert len([each for each in writes if each.startswith("UPDATE drones")]) == 1
