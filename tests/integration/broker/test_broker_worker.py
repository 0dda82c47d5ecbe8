"""A real Celery worker lives within a drone's rights, on Valkey and on Redis 7.0; Flower's view of it stays true."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from celery.events.state import State

from control_plane.broker.broker import Broker
from control_plane.core import EndedRun
from control_plane.flower.events import announce_ended_runs
from shared import names
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.planes import Plane

OKA = "0" * 11 + "a"
WORKER = names.worker(OKA, "host", "")
PASSWORD = "pass"
PROGRAM = Path(__file__).parents[2] / "support" / "plain_worker.py"


@contextmanager
def worker(broker: Broker, log: Path, name: str) -> Iterator[Any]:
    """A worker of this name in a process of its own; gives the lines that it prints."""
    broker.ensure_user(OKA, sha256(PASSWORD.encode()).hexdigest())
    with log.open("wb") as file:
        command = [sys.executable, str(PROGRAM), broker.drone_url(OKA, PASSWORD), OKA, name]
        root = Path(__file__).parents[3]
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=root, env={"PYTHONPATH": str(root)})
    try:
        wait_until(lambda: ping(broker, name))
        yield log.read_text
    finally:
        process.terminate()
        process.wait(60)


def ping(broker: Broker, name: str) -> Any:
    return broker.celery.control.inspect(timeout=1.0, destination=[name]).ping()


def publish(broker: Broker, run_id: str) -> None:
    broker.publish_order(drone_id=OKA, order_id="0" * 12, run_id=run_id, generation=1, envelope="sealed")


def test_a_worker_with_a_drones_rights_runs_and_answers(broker_server: BrokerServer, tmp_path: Path) -> None:
    broker, run_id, name = Broker(broker_server.url), names.new_id(), names.worker(OKA, "host", "0.a_b-c.")
    with worker(broker, tmp_path / "worker.log", name) as printed:
        publish(broker, run_id)
        wait_until(lambda: f"done {run_id}" in printed())
        queues = broker.celery.control.inspect(timeout=2.0).active_queues()
    assert [queue["name"] for queue in queues[name]] == [names.queue(OKA)]
    assert broker_server.acl_log() == []
    broker.close()


def test_messages_wait_in_the_queue_of_a_drone_that_is_away_also_after_redis_was_emptied(
    broker: Broker, valkey: BrokerServer
) -> None:
    [publish(broker, names.new_id()) for _ in range(3)]
    assert broker.queue_length(OKA) == 3
    valkey.redis.flushall()
    publish(broker, names.new_id())
    assert broker.queue_length(OKA) == 1


# --- Flower -------------------------------------------------------------------------------------


@contextmanager
def flowers_view(broker: Broker) -> Iterator[Any]:
    """What Flower makes of Celery's events: `view(run)` is the state that it shows for a task."""
    state = State()
    with broker.celery.connection() as connection:
        receiver = broker.celery.events.Receiver(connection, handlers={"*": state.event})
        listener = threading.Thread(target=receiver.capture, kwargs={"wakeup": False}, daemon=True)
        listener.start()
        # One of our own comes back: from here on nothing is missed.
        wait_until(lambda: send(broker, "task-received", "probe") or state.tasks.get("probe"))
        yield lambda run_id: state.tasks.get(run_id) and state.tasks[run_id].state
        receiver.should_stop = True
        listener.join(60)


def send(broker: Broker, kind: str, run_id: str) -> None:
    """An event as the drone's worker sends it."""
    with (
        broker.celery.connection() as connection,
        broker.celery.events.Dispatcher(connection, hostname=WORKER) as dispatcher,
    ):
        dispatcher.send(kind, uuid=run_id, name=names.RUN_TASK, args="", kwargs="")


def test_flower_does_not_show_a_lost_run_as_started_for_ever(live_plane: Plane) -> None:
    ends: tuple[tuple[Any, str], ...] = (("failed", "FAILURE"), ("retried", "RETRY"), ("revoked", "REVOKED"))
    with flowers_view(live_plane.core.broker) as view:
        for how, shown in ends:
            run_id = names.new_id()
            send(live_plane.core.broker, "task-received", run_id)
            send(live_plane.core.broker, "task-started", run_id)
            live_plane.until(lambda run=run_id: view(run) == "STARTED")
            announce_ended_runs(live_plane.core, [EndedRun(run_id, WORKER, how, "the drone fell silent")])
            live_plane.until(lambda run=run_id, state=shown: view(run) == state)
