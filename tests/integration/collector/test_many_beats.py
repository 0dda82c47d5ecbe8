"""Beats of many drones, and beats while the collector is behind with the streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import event

from control_plane.background.leases import Owners
from control_plane.collector.heartbeats import Beats
from control_plane.collector.listener import Listener
from control_plane.collector.reader import Reader
from control_plane.collector.stream_leases import Streams
from control_plane.db.runs import Run
from shared import names
from shared.events import RunBeat
from tests.bench.event_flow import bodies
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


def test_beats_of_many_drones_take_as_many_statements_as_those_of_few(plane: Plane) -> None:
    drones = [plane.drone(f"drone-{number}") for number in range(12)]
    alone, statements = BeatsAlone(plane), list[Any]()
    event.listen(plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
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


# --- what a batch of events costs; `make bench` measures more of it


def test_many_events_of_a_run_take_as_many_statements_as_few(plane: Plane) -> None:
    oka = plane.drone()
    placing = plane.supervisor()
    plane.submit()
    order = plane.until(oka.take)
    plane.stop(placing)
    assert oka.claim(order)
    owners = Owners("reader-alone", plane.core.clock, 60.0)
    Streams(plane.core, owners).share()
    reader = Reader(plane.core, owners, oka.id, QUICK)
    oka.report(order, oka.started())
    assert reader.take()

    statements, counts = list[Any](), []
    event.listen(plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    # SQLAlchemy inserts rows that get numbers of the database together on PostgreSQL only.
    inserts = "INSERT INTO steps"
    for number in (6, 60):
        oka.report(order, *bodies(number))
        statements.clear()
        assert reader.take()
        counts.append(sum(not each.startswith(inserts) for each in statements))
    assert counts[0] == counts[1] > 0
    (run,) = plane.rows(Run)
    assert (run.last_seq, run.tool_calls, run.output_tokens) == (67, 22, 22 * 40)
