"""A drone that is renamed: its worker in Celery has the new name as soon as its runs have ended."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from control_plane.broker.users import DroneUser, rules
from shared import names
from shared.control import ControlMessage, Rename
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn, window
from tests.support.drones import DroneUnderTest, Workshop
from tests.support.runs import shell, small_repository
from tests.support.scripted import ScriptedFactory

pytestmark = pytest.mark.timeout(120)


def rename(drone: DroneUnderTest, name: str) -> None:
    drone.fleet.tell(drone.id, ControlMessage(id=names.new_id(), body=Rename(name=name)))


def named(drone: DroneUnderTest, name: str) -> bool:
    """Whether the drone's last heartbeat comes from a worker of this name."""
    beats = drone.fleet.beats(drone.id)
    return bool(beats) and beats[-1].name == name and not beats[-1].stopping


def ping(drone: DroneUnderTest, worker: str) -> Any:
    return drone.fleet.broker.celery.control.inspect(timeout=10.0, destination=[worker]).ping()


def test_a_busy_drone_finishes_its_run_under_the_old_name_and_a_name_that_is_replayed_restarts_nothing(
    stand_in: ControlPlaneStandIn,
    make_drone: Callable[..., DroneUnderTest],
    scripted: ScriptedFactory,
    tmp_path: Path,
) -> None:
    drone, flag, redis = make_drone(), tmp_path / "go on", stand_in.broker.redis
    old = drone.worker
    drone.start()
    workshop = Workshop(stand_in, drone, small_repository(tmp_path / "repository.git"))
    waits = shell(f"while [ ! -e '{flag}' ]; do sleep 0.1; done")
    with window(stand_in) as state:
        sent = workshop.submit(scripted([waits, {"text": "Done."}]).url)
        wait_until(lambda: "tool_call" in stand_in.kinds(sent), seconds=90)
        stand_in.tell(drone.id, ControlMessage(id="first", body=Rename(name="west")))
        captured = str(redis.hget(names.inbox_key(drone.id), "first"))
        wait_until(lambda: stand_in.beats(drone.id)[-1].leaving)
        assert stand_in.beats(drone.id)[-1].name != "west"
        flag.touch()
        assert stand_in.ended(sent, seconds=60).status == "success"
        wait_until(lambda: state.tasks[sent.run_id].state == "SUCCESS")
        assert state.tasks[sent.run_id].worker.hostname == old
    wait_until(lambda: named(drone, "west"))
    assert wait_until(lambda: ping(drone, f"west.{drone.id}@testhost"), seconds=90)
    redis.delete(names.inbox_key(drone.id))
    rename(drone, "second")
    wait_until(lambda: named(drone, "second"))
    boot = stand_in.beats(drone.id)[-1].boot_id

    redis.hset(names.inbox_key(drone.id), "first", captured)
    stand_in.tell(drone.id, ControlMessage(id="again", body=Rename(name="second")))

    wait_until(lambda: {"first", "again"} <= set(stand_in.beats(drone.id)[-1].done))
    assert drone.home.config().name == "second"
    assert stand_in.beats(drone.id)[-1].boot_id == boot


def test_under_a_control_plane_of_an_earlier_version_the_worker_has_the_id_alone(
    stand_in: ControlPlaneStandIn, make_drone: Callable[..., DroneUnderTest], scripted: ScriptedFactory, tmp_path: Path
) -> None:
    drone = make_drone()
    user = DroneUser((sha256(b"drone-password").hexdigest(),))
    rights = rules(drone.id, user, knows_setinfo=stand_in.broker.redis_version() >= (7, 2))
    earlier = [word.replace(f"%R~*.{drone.id}@*.celery.pidbox*", "") for word in rights]
    assert earlier != rights
    stand_in.broker.redis.execute_command("ACL", "SETUSER", drone.id, *earlier)

    drone.start()
    drone.wait_consuming()
    sent = Workshop(stand_in, drone, small_repository(tmp_path / "repository.git")).submit(
        scripted([{"text": "Done."}]).url
    )

    assert stand_in.ended(sent, seconds=90).status == "success"
    assert stand_in.beats(drone.id)[-1].name == ""
    assert wait_until(lambda: ping(drone, f"{drone.id}@testhost"), seconds=90)
