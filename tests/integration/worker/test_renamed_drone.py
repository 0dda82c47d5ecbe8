"""A drone that is renamed: its worker has the new name as soon as its runs have ended; nothing replayed has effect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared import names
from shared.control import ControlMessage, Drain, Rename
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn, window
from tests.support.drones import DroneUnderTest
from tests.support.runs import order_for, shell
from tests.support.scripted import ScriptedFactory

pytestmark = pytest.mark.timeout(240)


def tell(drone: DroneUnderTest, message_id: str, body: Drain | Rename) -> str:
    """Send the message; returns its envelope."""
    drone.fleet.tell(drone.id, ControlMessage(id=message_id, body=body))
    return str(drone.fleet.broker.redis.hget(names.inbox_key(drone.id), message_id))


def named(drone: DroneUnderTest, name: str) -> bool:
    """Whether the drone's last heartbeat comes from a worker of this name."""
    beats = drone.fleet.beats(drone.id)
    return bool(beats) and beats[-1].name == name and not beats[-1].stopping


def ping(drone: DroneUnderTest, worker: str) -> Any:
    return drone.fleet.broker.celery.control.inspect(timeout=10.0, destination=[worker], limit=1).ping()


def test_a_busy_drone_finishes_its_run_under_the_old_name_and_what_is_replayed_changes_nothing(
    stand_in: ControlPlaneStandIn,
    make_drone: Callable[..., DroneUnderTest],
    scripted: ScriptedFactory,
    repository: Path,
    tmp_path: Path,
) -> None:
    drone, flag, redis = make_drone(), tmp_path / "go on", stand_in.broker.redis
    old = drone.worker
    drone.start()
    waits = shell(f"while [ ! -e '{flag}' ]; do sleep 0.1; done")
    with window(stand_in) as state:
        sent = stand_in.dispatch(order_for(drone.id, repository, scripted([waits, {"text": "Done."}]).url))
        wait_until(lambda: "tool_call" in stand_in.kinds(sent), seconds=90)
        captured = {"drain": tell(drone, "drain", Drain(on=True))}
        wait_until(lambda: stand_in.beats(drone.id)[-1].draining)
        tell(drone, "go on", Drain(on=False))
        captured["east"] = tell(drone, "east", Rename(name="east"))
        wait_until(lambda: stand_in.beats(drone.id)[-1].leaving)
        tell(drone, "west", Rename(name="west"))
        wait_until(lambda: drone.home.config().name == "west")
        assert stand_in.beats(drone.id)[-1].name not in {"east", "west"}
        flag.touch()
        assert stand_in.ended(sent).status == "success"
        wait_until(lambda: state.tasks[sent.run_id].state == "SUCCESS")
        assert state.tasks[sent.run_id].worker.hostname == old
    wait_until(lambda: named(drone, "west"), seconds=60)
    assert wait_until(lambda: ping(drone, f"west.{drone.id}@testhost"), seconds=90)
    boot = stand_in.beats(drone.id)[-1].boot_id

    redis.delete(names.inbox_key(drone.id))
    for message_id, envelope in captured.items():
        redis.hset(names.inbox_key(drone.id), message_id, envelope)

    wait_until(lambda: {"drain", "east"} <= set(stand_in.beats(drone.id)[-1].done))
    last = stand_in.beats(drone.id)[-1]
    assert (drone.home.config().name, last.boot_id, last.draining, last.leaving) == ("west", boot, False, False)
