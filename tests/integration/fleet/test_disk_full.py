"""Full disks, for real: what cannot be written now is written later, told in one sentence, and loses nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from control_plane.broker.broker import Broker
from control_plane.broker.valkey_config import program
from control_plane.core import Core
from control_plane.db.drones import RawEvent
from control_plane.db.engine import sqlite_url_of
from drone.installation.disk import DiskSpace, free_bytes
from drone.installation.home import DroneHome
from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.runs.blobs import RunApi
from drone.runs.directory import Meta, RunDirectory
from drone.sandbox import choose
from drone.workspace import Workspaces
from shared.clock import SystemClock
from shared.errors import FleetError, FleetFault, Unreachable
from shared.events import CommentStep, RunEnded
from shared.names import new_id
from shared.work_order import WorkOrder
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.database import CoreFactory
from tests.support.disks import Disk
from tests.support.drones import DroneUnderTest
from tests.support.fleet import api_on
from tests.support.planes import Plane, hand_clock, plane_on
from tests.support.repositories import calc_project, work_order
from tests.support.runs import order_for, shell, small_repository
from tests.support.scripted import ScriptedFactory

pytestmark = [pytest.mark.timeout(400), pytest.mark.apart]
IDENTITY = RunIdentity("r" * 12, "o" * 12, 1)
META = Meta("o" * 12, 1, "b" * 12, "2026-11-21T12:00:00+00:00")
END = RunEnded(status="failed", exit_status="lost", reason="the drone's disk is full")


# --- the drone: journals and markers ------------------------------------------------------


def test_a_run_on_a_disk_that_filled_up_can_still_write_its_end(small_disk: Disk) -> None:
    run = RunDirectory(small_disk.path / "runs" / IDENTITY.run_id)
    run.create(META)
    with journal.opened(run.journal, IDENTITY, SystemClock()) as writer:
        writer.append(CommentStep(text="begun"))
        small_disk.fill()
        with pytest.raises(OSError, match="No space left") as refused:
            list(map(writer.append, repeat(CommentStep(text="x" * 5000), 10)))
        writer.append(END)

    assert refused.value.errno == errno.ENOSPC
    numbers = [line.event.seq for line in journal.walk(run.journal)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert run.end() == END


def test_without_room_no_run_is_begun_by_half_no_marker_is_lost_and_a_confirmed_run_is_forgotten(
    small_disk: Disk,
) -> None:
    run, other = (RunDirectory(small_disk.path / "runs" / name) for name in (IDENTITY.run_id, "s" * 12))
    run.create(META)
    (run.logs / "log").write_text("x" * 10_000)
    small_disk.fill()

    with pytest.raises(OSError, match="No space left"):
        other.create(META)
    with pytest.raises(OSError, match="No space left"):
        run.save(Meta("o" * 12, 1, "b" * 12, "x" * 5000))

    assert (other.path.exists(), run.meta()) == (False, META)
    run.forget()
    assert run.meta().confirmed  # type: ignore[union-attr]
    small_disk.clear()
    assert other.create(META)


def test_there_is_room_again_only_with_some_to_spare(small_disk: Disk) -> None:
    room = DiskSpace(small_disk.path / "yet" / "to be made", floor=50_000_000, enough=80_000_000)
    before = room.lacking()
    small_disk.fill(leave=40_500_000)
    full = room.lacking()
    small_disk.clear(), small_disk.fill(leave=60_000_000)
    between = room.lacking()
    small_disk.clear(), small_disk.fill(leave=90_000_000)

    assert (before, room.lacking()) == ("", "")
    assert full == f"40 MB free in {small_disk.path / 'yet' / 'to be made'}"
    assert between != ""
    assert free_bytes(small_disk.path) == small_disk.free


# --- the drone: runs ----------------------------------------------------------------------


def test_with_a_full_disk_a_run_ends_truthfully_no_order_is_taken_and_the_drone_and_its_other_run_live_on(
    stand_in: ControlPlaneStandIn, small_disk: Disk, tmp_path: Path, scripted: ScriptedFactory
) -> None:
    home = DroneHome(small_disk.path / "drone")
    drone = DroneUnderTest(stand_in, home, stand_in.register(home, concurrency=2))
    repository = small_repository(tmp_path / "repository.git")
    held = shell("echo begun; until test -e go; do sleep 0.1; done")

    def order(*script: dict[str, Any]) -> WorkOrder:
        return order_for(drone.id, repository, scripted(list(script)).url)

    with closing(drone):
        drone.start_worker()
        fails = stand_in.dispatch(order(held, *repeat(shell("echo more"), 50)))
        lives = stand_in.dispatch(order(held, {"text": "Done."}))
        wait_until(lambda: began(stand_in, drone, fails.run_id) and began(stand_in, drone, lives.run_id), seconds=180)

        small_disk.fill()
        go(drone, fails.order.session.id)
        end = stand_in.ended(fails, seconds=180)
        wait_until(lambda: stand_in.beats(drone.id)[-1].full, seconds=120)
        # A request for a message that began before the disk was full still takes one.
        wait_until(lambda: not drone.consumes(), seconds=60)
        waits = stand_in.dispatch(order({"text": "Done."}))
        count = len(stand_in.beats(drone.id))
        wait_until(lambda: len(stand_in.beats(drone.id)) > count + 1, seconds=120)
        last, waiting = stand_in.beats(drone.id)[-1], stand_in.broker.queue_length(drone.id)
        small_disk.clear()
        go(drone, lives.order.session.id)
        others = [stand_in.ended(each, seconds=180).status for each in (lives, waits)]

    assert (end.status, end.order_at_fault) == ("failed", False)
    assert end.reason.startswith("the drone's disk is full")
    assert (last.full.startswith("0 MB free in "), waiting, others) == (True, 1, ["success", "success"])


def test_an_order_that_cannot_be_fetched_for_lack_of_room_is_the_fleets_fault(
    small_disk: Disk, drone_git: dict[str, str], tmp_path: Path
) -> None:
    workspaces = Workspaces(small_disk.path / "workspace", drone_git, choose("none", os.environ))
    order = work_order(calc_project(tmp_path / "calc.git"))
    small_disk.fill()

    with pytest.raises(FleetFault) as refused:
        workspaces.prepare(order, lambda run, sha: b"", lambda: None)

    small_disk.clear()
    assert refused.value.code == "E-DISK-FULL"
    assert "drone doctor" in refused.value.next
    workspaces.prepare(order, lambda run, sha: b"", lambda: None).close()


# --- the control plane --------------------------------------------------------------------


@contextmanager
def plane_of(core: Core) -> Iterator[Plane]:
    yield from plane_on(core)


def test_on_a_full_disk_of_the_database_nothing_is_lost_and_all_goes_on(
    sqlite_template: Path, small_disk: Disk, core_factory: CoreFactory, broker: Broker
) -> None:
    path = small_disk.path / "fleet.db"
    path.write_bytes(sqlite_template.read_bytes())
    with plane_of(core_factory(sqlite_url_of(path), broker=broker, clock=hand_clock())) as plane:
        oka = plane.drone("oka")
        plane.collector(), plane.supervisor()
        order = plane.begun(oka)

        small_disk.fill()
        oka.report(order, *[CommentStep(text=f"{number} {'x' * 2000}") for number in range(300)])
        with pytest.raises(FleetFault) as refused:
            list(map(plane.submit, repeat("x" * 5000, 1000)))
        small_disk.clear()
        oka.report(order, oka.ended())
        ended = plane.reaches(order.order_id, "succeeded")

        assert refused.value.code in {"E-DB-FULL", "E-DB-UNREACHABLE"}
        assert refused.value.http_status == 503
        assert [step.seq for step in ended.steps] == list(range(1, 303))
        assert plane.rows(RawEvent) == []
        assert plane.submit()


def test_a_blob_waits_until_the_disk_of_the_blobs_has_room(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory, small_disk: Disk
) -> None:
    with api_on(sqlite_url, valkey, with_blobs_in(core_factory, small_disk.path / "blobs")) as api:
        api.add_work()
        drone = api.add_drone()
        run = drone.take(api.submit())
        clock = SystemClock()
        small_disk.fill()
        with (
            closing(RunApi(api.url, drone.token, run.id, clock, lambda: 0.0)) as impatient,
            pytest.raises(Unreachable) as refused,
        ):
            impatient.put(b"x" * 100_000)
        told: list[float] = []

        def patience() -> float:
            told.append(clock.monotonic())
            small_disk.clear()
            return 60.0

        with closing(RunApi(api.url, drone.token, run.id, clock, patience)) as patient:
            stored = patient.put(b"x" * 100_000)

        assert refused.value.code == "E-SERVER-DISK"
        assert told
        assert api.core.blobs.read(stored) == b"x" * 100_000


def with_blobs_in(core_factory: CoreFactory, blobs: Path) -> CoreFactory:
    return lambda url, **settings: core_factory(url, **settings, blob_dir=blobs)


def test_a_broker_with_a_full_disk_refuses_writes_and_nothing_is_lost(
    small_disk: Disk, sqlite_url: str, core_factory: CoreFactory
) -> None:
    server = BrokerServer(small_disk.path / "valkey", program())
    server.start()
    broker = Broker(server.url)
    with (
        closing(server),
        closing(broker),
        plane_of(core_factory(sqlite_url, broker=broker, clock=hand_clock())) as plane,
    ):
        oka = plane.drone("oka")
        plane.collector(), plane.supervisor()
        order = plane.claimed(oka)
        oka.report(order, oka.started(), *[CommentStep(text=str(number)) for number in range(50)])
        small_disk.fill()
        refused = wait_until(lambda: refusal(broker))
        waiting = plane.submit("while it is full")
        small_disk.clear()
        wait_until(lambda: refusal(broker) is None)
        oka.report(order, oka.ended())
        ended = plane.reaches(order.order_id, "succeeded")

        assert refused.code == "E-BROKER-FULL"
        assert plane.until(oka.take).order_id == waiting
        assert plane.rows(RawEvent) == []
        assert [step.seq for step in ended.steps] == list(range(1, 53))


def refusal(broker: Broker) -> FleetError | None:
    """What the server says to a write; None if it takes it."""
    with suppress(OSError):
        try:
            broker.offer_run("d" * 12, new_id(), 1)
        except FleetError as error:
            return error
    return None


def began(stand_in: ControlPlaneStandIn, drone: DroneUnderTest, run_id: str) -> bool:
    return any(d.run_id == run_id and "begun" in d.text for d in stand_in.deltas(drone.id) if d.kind == "output")


def go(drone: DroneUnderTest, session: str) -> None:
    """Let the command of the run go on that works in this session."""
    (Path(drone.config.workspace) / "sessions" / session / "work" / "go").touch()
