"""Flower and the fleet's own documents show the same states and numbers, after orders that end in every way."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from control_plane.declarations import drones, orders
from control_plane.declarations.orders import CancelRequest
from drone.model.scripted.server import ScriptedServer
from shared import names
from tests.support import wait_until
from tests.support.ending import wait_for_end
from tests.support.repositories import calc_project
from tests.support.whole_fleet import Doc, WholeFleet, WorkstationDrone

pytestmark = [pytest.mark.timeout(900), pytest.mark.apart]
FINAL = {"SUCCESS", "FAILURE", "RETRY", "REVOKED"}
SECRETS = ("sk-secret-of-the-provider", "ghp_0123456789secret", "word of the prompt")
PROMPT = f"{SECRETS[2]}: "


@dataclass
class Comparison:
    """A fleet with two drones that work and one that is switched off, and its orders by what happens to them."""

    fleet: WholeFleet
    east: WorkstationDrone
    west: WorkstationDrone
    made: dict[str, list[str]] = field(default_factory=dict)

    def submit(self, kind: str, script: str, *, project: str = "demo", **wanted: Any) -> str:
        with self.fleet.client() as client:
            asked = {"prompt": f"{PROMPT}{kind}, script:{script}", "project": project, **wanted}
            order_id = str(client.submit(asked)["id"])
        self.made.setdefault(kind, []).append(order_id)
        return order_id

    def at_work(self, kind: str) -> None:
        """Wait until an order of this kind runs."""
        wait_until(lambda: any(self.fleet.order(each)["status"] == "running" for each in self.made[kind]), seconds=120)

    def cancel(self, order_id: str) -> None:
        with self.fleet.client() as client:
            client.call(orders.CANCEL, CancelRequest(), order_id=order_id)

    def documents(self) -> list[Doc]:
        """All orders with their runs, once all have ended."""
        return [self.fleet.ended(order_id, seconds=400) for kind in self.made.values() for order_id in kind]

    def flower(self, path: str) -> Any:
        """The answer of Flower, once it answers."""
        bearer = {"Authorization": f"Bearer {self.fleet.token}"}
        address = f"{self.fleet.url}/flower{path}"
        return wait_until(
            lambda: (got := httpx.get(address, headers=bearer, timeout=60)).is_success and got, seconds=60
        )

    def tasks(self) -> dict[str, Doc]:
        return dict(self.flower("/api/tasks").json())


@pytest.mark.parametrize("rounds", [4, pytest.param(20, marks=pytest.mark.long)], ids=["20 orders", "100 orders"])
def test_flower_and_the_documents_show_the_same_states_and_numbers(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path, rounds: int
) -> None:
    compared = begin(start_fleet(drones=0, options=("--flower-port", "0")), model, tmp_path)

    compared.submit("ends with its drone", "hold", drone="west", max_attempts=1)
    compared.submit("has no access", "note", drone="east", project="private")
    for _ in range(rounds):
        compared.submit("succeeds", "note", drone="east")
        compared.submit("fails", "refused", drone="east")
        compared.submit("canceled in the queue", "note", drone="off")
        compared.submit("is run again", "slow", drone="west")
    for number in range(rounds - 2):
        last = compared.submit("canceled", "hold", drone="east", priority=1)
        wait_until(lambda order_id=last: compared.fleet.order(order_id)["status"] == "running", seconds=120)
        if number == 0:
            kill_flower(compared.fleet)
        compared.cancel(last)
    for order_id in compared.made["canceled in the queue"]:
        compared.cancel(order_id)
    compared.at_work("ends with its drone")
    compared.at_work("is run again")
    kill(compared.west)
    compared.west.start()
    documents = compared.documents()

    assert len(documents) == 5 * rounds
    assert_same_states(compared, documents)
    assert_same_queues(compared)
    assert not [secret for secret in SECRETS if secret in json.dumps(compared.tasks())]


def begin(fleet: WholeFleet, model: ScriptedServer, tmp_path: Path) -> Comparison:
    git_url = f"file://{calc_project(tmp_path / 'calc.git')}"
    fleet.json(
        "provider",
        "add",
        "scripted",
        "--model",
        "openai/scripted",
        "--api-base",
        model.url,
        "--no-check",
        "--api-key-stdin",
        text=SECRETS[0],
    )
    for slug, address in (("demo", git_url), ("private", f"https://fleet:{SECRETS[1]}@127.0.0.1:9/private.git")):
        fleet.json("project", "add", slug, "--git-url", address, "--provider", "scripted", "--no-check")
    east, west = (fleet.workstation(name, "--concurrency", "3") for name in ("east", "west"))
    fleet.workstation("off")
    east.start(), west.start()
    fleet.online("east", "west", seconds=60)
    return Comparison(fleet, east, west)


def kill_flower(fleet: WholeFleet) -> None:
    """Kill Flower; `fleet up` starts it again."""
    port = int(json.loads((fleet.data / "up.json").read_text())["flower_port"])
    assert fleet.process is not None
    (flower,) = (each for each in psutil.Process(fleet.process.pid).children(recursive=True) if listens(each, port))
    flower.kill()
    wait_for_end(flower.pid)


def listens(process: psutil.Process, port: int) -> bool:
    found = process.net_connections()
    return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in found)


def kill(drone: WorkstationDrone) -> None:
    """Kill a drone; its worker and its runs end with it."""
    assert drone.process is not None
    drone.process.send_signal(signal.SIGKILL)
    drone.process.wait(60)


def assert_same_states(compared: Comparison, documents: list[Doc]) -> None:
    expected = {run["id"]: state_of(order, run) for order in documents for run in order["runs"]}
    tasks = wait_until(lambda: settled(compared.tasks(), expected), seconds=60)
    shown = {run_id: task["state"] for run_id, task in tasks.items()}

    assert {run_id: shown[run_id] for run_id in expected} == expected
    # A task without a run never began: its order was canceled first, or it went to another drone.
    assert {state for run_id, state in shown.items() if run_id not in expected} == {"REVOKED"}
    ends = Counter(order["status"] for order in documents)
    numbers = Counter(shown.values())
    assert (numbers["SUCCESS"], numbers["FAILURE"]) == (ends["succeeded"], ends["failed"])
    assert numbers["REVOKED"] >= ends["canceled"]
    assert numbers["RETRY"] == sum(state == "RETRY" for state in expected.values()) > 0
    workers = compared.flower("/workers?json=1").json()["data"]
    assert sum(each.get("task-succeeded", 0) for each in workers) == numbers["SUCCESS"]


def settled(tasks: dict[str, Doc], expected: dict[str, str]) -> dict[str, Doc] | None:
    """The tasks, once all have ended and those of runs are as the documents say; a last look fails with the rest."""
    same = all(tasks.get(run_id, {}).get("state") == state for run_id, state in expected.items())
    return tasks if same and {task["state"] for task in tasks.values()} <= FINAL else None


def state_of(order: Doc, run: Doc) -> str:
    """What Flower is to show of a run."""
    if run["status"] == "success":
        return "SUCCESS"
    last = run is order["runs"][-1]
    if run["exit_status"] == "canceled" or (last and order["status"] == "canceled"):
        return "REVOKED"
    return "FAILURE" if last and order["status"] == "failed" else "RETRY"


def assert_same_queues(compared: Comparison) -> None:
    """The page of queues has the numbers of `fleet drones`, also for a drone that is switched off."""
    with compared.fleet.client() as client:
        known = client.call(drones.LIST)
    page = compared.flower("/broker").text
    for drone in known:
        row = page.partition(f"<td>{names.queue(drone['id'])}</td>")[2].partition("</tr>")[0]
        assert f">{drone['queued']}<" in row.replace("\n", "").replace(" ", "")
    assert {drone["name"]: drone["queued"] for drone in known} == {"east": 0, "west": 0, "off": 0}
