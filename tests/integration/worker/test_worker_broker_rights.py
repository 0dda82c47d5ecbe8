"""A real drone asks the broker for nothing that it may not have: the server's log of refusals stays empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from drone.installation.home import DroneHome
from shared import names
from shared.control import Cancel, ControlMessage
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.control_stand_in import ControlPlaneStandIn, window
from tests.support.drones import DroneUnderTest, Workshop
from tests.support.runs import shell, small_repository
from tests.support.scripted import ScriptedFactory

pytestmark = pytest.mark.timeout(240)
SLOW = [shell("echo begun; sleep 300"), {"text": "Done."}]


@pytest.fixture
def workshop(redis_server: BrokerServer, tmp_path: Path) -> Iterator[Workshop]:
    """A drone as `drone start` starts it; `test_worker_runs_orders.py` looks at the log of a Valkey."""
    fleet = ControlPlaneStandIn(redis_server)
    home = DroneHome(tmp_path / "drone")
    drone = DroneUnderTest(fleet, home, fleet.register(home, concurrency=2))
    drone.start()
    yield Workshop(fleet, drone, small_repository(tmp_path / "repository.git"))
    drone.close()
    fleet.close()


def test_the_broker_refuses_nothing_while_orders_are_carried_out_and_the_drone_is_controlled(
    workshop: Workshop, redis_server: BrokerServer, scripted: ScriptedFactory
) -> None:
    fleet, drone = workshop.fleet, workshop.drone
    done = workshop.submit(scripted([shell("echo new > file.txt"), {"text": "Done."}]).url)
    assert fleet.ended(done, seconds=90).status == "success"
    # The drone leaves nothing among the keys that all share.
    ours = {f"_kombu.binding.{names.queue(drone.id)}", f"_kombu.binding_permanent.{names.queue(drone.id)}"}
    assert set(redis_server.redis.keys("_kombu*")) - ours == set()
    assert redis_server.redis.keys("unacked*") == []
    with window(fleet) as state:
        stopped, canceled = workshop.submit(scripted(SLOW).url), workshop.submit(scripted(SLOW).url)
        wait_until(lambda: shown(state, stopped.run_id) == shown(state, canceled.run_id) == "STARTED")
        fleet.broker.celery.control.terminate(stopped.run_id)
        fleet.tell(drone.id, ControlMessage(id=names.new_id(), body=Cancel(run_id=canceled.run_id, generation=1)))
        assert [fleet.ended(each).exit_status for each in (stopped, canceled)] == ["canceled"] * 2
    assert_answers(workshop)

    fleet.restart_broker()
    again = workshop.submit(scripted([{"text": "Done."}]).url)
    assert fleet.ended(again, seconds=90).status == "success"
    assert drone.stop() == 0
    # Redis 7.0 itself, as the default user, refuses transactions with several writes while it loads its file.
    assert [entry for entry in redis_server.acl_log() if entry["username"] != "default"] == []


def assert_answers(workshop: Workshop) -> None:
    """The drone's worker answers the questions that Flower asks."""
    worker = workshop.drone.worker
    inspect = workshop.fleet.broker.celery.control.inspect(timeout=10.0, destination=[worker])
    for question in (inspect.ping, inspect.active_queues, inspect.stats, inspect.conf, inspect.registered):
        assert wait_until(lambda ask=question: answers(ask), seconds=90)[worker]


def answers(ask: Callable[[], Any]) -> Any:
    """The workers' answers; None if the asking side's own connection ended with the server that was restarted."""
    with suppress(redis.ConnectionError):
        return ask()
    return None


def shown(state: Any, run_id: str) -> str | None:
    task = state.tasks.get(run_id)
    return task.state if task else None
