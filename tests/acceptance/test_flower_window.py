"""Flower's view of a fleet: drones as workers, waiting orders in their queues, ended orders as ended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from drone.installation.home import DroneHome
from drone.model.scripted.server import ScriptedServer
from shared import names
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

FLOWER_ADDRESSES = [
    ("GET", "/"),
    ("GET", "/broker"),
    ("GET", "/metrics"),
    ("GET", "/api/workers"),
    ("GET", "/api/tasks"),
    ("POST", "/api/worker/shutdown/anyone"),
    ("POST", "/api/worker/queue/cancel-consumer/anyone?queue=celery"),
    ("POST", "/api/task/revoke/0?terminate=true"),
    ("POST", "/api/task/async-apply/fleet.run"),
]
pytestmark = [pytest.mark.timeout(240), pytest.mark.apart]


def test_flower_shows_drones_queues_and_the_true_state_of_every_order(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(options=("--flower-port", "0"))
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    off = fleet.workstation("off")
    flower = _Flower(fleet)
    wait_until(flower.workers, seconds=60)

    good = fleet.ended(fleet.submit("Note it, script:note")["id"])
    bad = fleet.ended(fleet.submit("Ask in vain, script:refused")["id"])
    held = fleet.submit("Wait, script:hold")["id"]
    wait_until(lambda: fleet.order(held)["status"] == "running")
    held_run = fleet.order(held)["runs"][0]["id"]
    fleet.json("cancel", held, "--wait")
    fleet.submit("Note it, script:note", "--drone", "off")

    drones = {drone["name"]: drone["id"] for drone in fleet.json("drones")}
    assert any(worker.startswith(f"local-1.{drones['local-1']}@") for worker in flower.workers())
    assert wait_until(lambda: flower.waiting(names.queue(drones["off"])) == 1)
    assert off.process is None
    states = wait_until(lambda: flower.settled(good["runs"][0]["id"], bad["runs"][0]["id"], held_run))
    assert states == ["SUCCESS", "FAILURE", "REVOKED"]
    assert model.url not in json.dumps(flower.tasks())


def test_flower_asks_who_is_there(start_fleet: Callable[..., WholeFleet]) -> None:
    fleet = start_fleet(drones=0, options=("--flower-port", "0"))
    flower = _Flower(fleet)

    answer = wait_until(flower.without_password)

    assert answer == 401


def test_flower_refuses_the_credentials_of_a_drone(start_fleet: Callable[..., WholeFleet]) -> None:
    fleet = start_fleet(drones=0, options=("--flower-port", "0"))
    home = DroneHome(Path(fleet.workstation("mila").environment["DRONE_HOME"]))
    credentials, flower = home.credentials(), _Flower(fleet)
    wait_until(flower.without_password)
    password = str(httpx.URL(credentials.broker_url).password)
    tried = [(home.config().drone_id, password), ("fleet", password), ("fleet", credentials.api_token), ("fleet", "")]

    answers = [flower.status(method, path, auth=auth) for auth in tried for method, path in FLOWER_ADDRESSES]
    bearer = {"Authorization": f"Bearer {credentials.api_token}"}
    answers += [flower.status(method, path, headers=bearer) for method, path in FLOWER_ADDRESSES]

    assert set(answers) == {401}
    assert len(answers) == 5 * len(FLOWER_ADDRESSES)
    assert [flower.status("GET", path, auth=flower.auth) for path in ("/api/workers", "/metrics")] == [200, 200]


class _Flower:
    """Flower over HTTP, as an admin's browser reads it."""

    def __init__(self, fleet: WholeFleet) -> None:
        known = json.loads((fleet.data / "up.json").read_text())
        self._url = f"http://127.0.0.1:{known['flower_port']}/flower"
        self.auth = ("fleet", known["flower_password"])

    def status(self, method: str, path: str, **options: Any) -> int:
        return httpx.request(method, f"{self._url}{path}", timeout=60, verify=False, **options).status_code

    def workers(self) -> dict[str, Any]:
        return dict(self._get("/api/workers?refresh=1") or {})

    def tasks(self) -> dict[str, Any]:
        return dict(self._get("/api/tasks") or {})

    def waiting(self, queue: str) -> int:
        page = httpx.get(f"{self._url}/broker", auth=self.auth, verify=False).text
        found = re.search(rf"<td>{re.escape(queue)}</td>\s*<td[^>]*>\s*(\d+)", page)
        return int(found[1]) if found else -1

    def settled(self, *task_ids: str) -> list[str] | None:
        states = [self.tasks().get(task_id, {}).get("state", "") for task_id in task_ids]
        return states if not {"", "STARTED", "RECEIVED", "PENDING"} & set(states) else None

    def without_password(self) -> int | None:
        try:
            return httpx.get(f"{self._url}/api/workers", verify=False).status_code
        except httpx.TransportError:
            return None

    def _get(self, path: str) -> Any:
        try:
            answer = httpx.get(f"{self._url}{path}", auth=self.auth, timeout=60, verify=False)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None
