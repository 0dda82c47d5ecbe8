"""Garbage in a drone's stream costs the control plane neither memory nor disk, and good events behind it are stored."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from control_plane.collector import Taker, intake
from control_plane.collector.listener import Listener
from control_plane.collector.stream_entries import DroneStream, has_later_hello
from control_plane.collector.stream_leases import Streams
from control_plane.core.background.leases import Owners
from control_plane.db.drones import Drone, RawEvent
from control_plane.supervisor.cleaning import clean
from shared import names
from shared.envelope import Binding
from shared.events import Hello
from tests.support.planes import QUICK, Plane
from tests.support.stand_in import DroneStandIn

PIECE = "x" * (12 * 1024 * 1024)


def put_60_mb(drone: DroneStandIn) -> None:
    drone.redis.xadd(names.events_stream(drone.id), {"t": "event", **{f"part{number}": PIECE for number in range(5)}})


def test_three_entries_of_60_mb_are_never_read_and_leave_a_note_each(plane: Plane) -> None:
    drone = plane.drone()
    for _ in range(3):
        put_60_mb(drone)
    first = DroneStream(plane.core.broker, drone.id).read(100)
    assert [entry.fields for entry in first] == [{}]
    assert not has_later_hello(plane.core.broker, drone.id, "0-0")

    plane.collector()
    raw = plane.until(lambda: len(rows := plane.rows(RawEvent)) == 3 and rows)
    # Not before: while these entries are in the broker, a supervisor lets the drone write nothing.
    plane.supervisor()
    order = plane.claimed(drone)
    drone.report(order, drone.started())

    plane.until(lambda: plane.status(order.order_id) == "running")
    assert [row.fields for row in raw] == [{}, {}, {}]
    assert all("too large to read: 62914" in row.error for row in raw)
    plane.until(lambda: plane.core.broker.redis.xlen(names.events_stream(drone.id)) == 0)


def test_a_read_of_a_large_stream_is_bounded_and_loses_nothing(plane: Plane) -> None:
    drone = plane.drone()
    for number in range(40):
        drone.redis.xadd(names.events_stream(drone.id), {"t": str(number), "e": "y" * 900_000})
    stream, read = DroneStream(plane.core.broker, drone.id), list[str]()
    while entries := stream.read(100):
        assert sum(len(entry.fields["e"]) for entry in entries) <= 17 * 1024 * 1024
        stream.acknowledge([entry.id for entry in entries])
        read += [entry.fields["t"] for entry in entries]
    assert read == [str(number) for number in range(40)]


def test_raw_entries_are_cut_and_limited_in_number_and_age(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_RAW_OF_DRONE", 3)
    drone = plane.drone()
    plane.collector()
    for _ in range(6):
        drone.put("nonsense", "z" * 500_000)
    plane.until(lambda: plane.core.broker.redis.xlen(names.events_stream(drone.id)) == 0)
    raw = plane.rows(RawEvent)
    assert len(raw) == 3
    assert all(len(json.dumps(row.fields)) < 17_000 and int(row.fields["bytes"]) > 500_000 for row in raw)

    with plane.core.database.write() as db:
        for row in db.query(RawEvent):
            row.at -= timedelta(days=31)
    clean(plane.core)
    assert plane.rows(RawEvent) == []


def test_a_stream_full_of_garbage_is_read_in_turns_with_the_streams_of_others(plane: Plane) -> None:
    # Streams that are due at the same time are read in the order of the drones' ids.
    hostile, other = sorted((plane.drone("oka"), plane.drone("mila")), key=lambda drone: drone.id)
    plane.supervisor()
    order = plane.claimed(other)
    other.report(order, other.started())
    with hostile.redis.pipeline(transaction=False) as pipe:
        for _ in range(5000):
            pipe.xadd(names.events_stream(hostile.id), {"t": "nonsense"})
        pipe.execute()

    owners = Owners("collector", plane.core.clock, QUICK.owner_ttl)
    streams = Streams(plane.core, owners)
    streams.share()
    Taker(plane.core, owners, streams, Listener(plane.core, QUICK.stop_within), QUICK).take()

    assert plane.status(order.order_id) == "running"
    assert plane.core.broker.redis.xlen(names.events_stream(hostile.id)) > 0


def test_an_event_that_is_nested_too_deep_and_labels_that_a_registration_would_refuse_are_refused(plane: Plane) -> None:
    drone = plane.drone(labels={"gpu": "yes"})
    plane.collector()
    drone.put("event", drone.seal("[" * 100_000, Binding(direction="event", drone=drone.id)))
    hello = Hello.model_validate({**drone._self(), "at": plane.core.clock.now(), "labels": {"\x1b]0;x\x07": "y"}})
    drone.put("hello", drone.seal(hello.model_dump_json(), Binding(direction="hello", drone=drone.id)))
    event, labels = plane.until(lambda: len(rows := plane.rows(RawEvent)) == 2 and rows)
    assert event.error.startswith("not a valid event")
    assert "invalid label" in labels.error
    assert plane.rows(Drone)[0].labels == {"gpu": "yes"}
