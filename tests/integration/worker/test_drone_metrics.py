"""`drone start --metrics-port`: the figures of a real drone, and what happens if the port is in use."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from drone.metrics.server import HOST, serving
from shared.errors import Conflict
from tests.support import HeldPort, wait_until
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.drones import DroneUnderTest, worker_below
from tests.support.metrics import documented, figure, labels_in, printed, read_port, series_in
from tests.support.runs import order_for, shell
from tests.support.scripted import ScriptedFactory

pytestmark = pytest.mark.apart
MakeDrone = Callable[..., DroneUnderTest]


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of the drones that this test starts."""
    with HeldPort() as held:
        monkeypatch.setenv("DRONE_METRICS_PORT", str(held))
        yield held


def test_a_drone_counts_what_its_runs_report_and_restarts_of_its_worker(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory, port: int
) -> None:
    drone = make_drone(concurrency=2)
    model = scripted([shell("echo one"), shell("exit 3"), {"text": "Done."}])
    drone.start()
    sent = stand_in.dispatch(order_for(drone.id, repository, model.url))
    assert stand_in.ended(sent, seconds=120).status == "success"
    # The last event is counted before it is sent.
    text = read_port(port)
    found = series_in(text)
    kinds = stand_in.kinds(sent)
    assert figure(found, "drone_model_calls_total", outcome="answered") == kinds.count("assistant") == 3
    assert figure(found, "drone_model_call_seconds_count") == 3
    assert figure(found, "drone_model_calls_total", outcome="failed") == 0
    assert figure(found, "drone_tool_calls_total", tool="shell", outcome="ok") == kinds.count("tool_result") == 2
    assert figure(found, "drone_slots") == 2
    assert figure(found, "drone_disk_free_bytes") <= figure(found, "drone_disk_bytes")
    known = documented("drone")
    assert printed(text) == {name: kind for name, (kind, _) in known.items()}
    assert labels_in(text) == {name: labels for name, (_, labels) in known.items()}
    wait_until(lambda: figure(series_in(read_port(port)), "drone_journal_unsent_bytes") == 0)
    wait_until(lambda: figure(series_in(read_port(port)), "drone_runs_active") == 0)
    # The port is on loopback alone, and has no other page.
    url = f"http://127.0.0.1:{port}"
    assert httpx.get(f"{url}/", trust_env=False).status_code == 404
    assert httpx.get(f"{url}/metrics", headers={"Host": "pages.example"}, trust_env=False).status_code == 403
    assert httpx.get(f"{url}/metrics", headers={"Host": "[::"}, trust_env=False).status_code == 403
    assert drone.process is not None
    worker = worker_below(drone.process.pid)
    listening = [each.laddr for each in worker.net_connections() if each.status == "LISTEN"]
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", port)]
    worker.kill()
    wait_until(lambda: "drone_worker_restarts_total 1.0" in read_port(port), seconds=60)


def test_a_port_that_is_in_use_is_refused_and_said_what_to_do() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Conflict) as refused:
            serving(CollectorRegistry(), port).__enter__()
    assert refused.value.what == f"the drone cannot serve metrics on {HOST} port {port}"
    assert "drone start --metrics-port" in refused.value.next
