"""Flower's view of a fleet: drones as workers, waiting orders in their queues, ended orders as ended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from drone.model.scripted.server import ScriptedServer
from shared import names
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(240), pytest.mark.apart]


def test_flower_shows_drones_queues_and_the_true_state_of_every_order(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(options=("--flower-port", "0"))
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    off = fleet.workstation("off")
    flower = _Flower(fleet)
    wait_until(flower.workers, seconds=40)

    good = fleet.ended(fleet.submit("Note it, script:note")["id"])
    bad = fleet.ended(fleet.submit("Ask in vain, script:refused")["id"])
    held = fleet.submit("Wait, script:hold")["id"]
    wait_until(lambda: fleet.order(held)["status"] == "running", seconds=30)
    held_run = fleet.order(held)["runs"][0]["id"]
    fleet.json("cancel", held, "--wait")
    fleet.submit("Note it, script:note", "--drone", "off")

    drones = {drone["name"]: drone["id"] for drone in fleet.json("drones")}
    assert any(worker.startswith(drones["local-1"]) for worker in flower.workers())
    assert wait_until(lambda: flower.waiting(names.queue(drones["off"])) == 1)
    assert off.process is None
    states = wait_until(lambda: flower.settled(good["runs"][0]["id"], bad["runs"][0]["id"], held_run), seconds=20)
    assert states == ["SUCCESS", "FAILURE", "REVOKED"]
    assert model.url not in json.dumps(flower.tasks())


def test_flower_asks_who_is_there(start_fleet: Callable[..., WholeFleet]) -> None:
    fleet = start_fleet(drones=0, options=("--flower-port", "0"))
    flower = _Flower(fleet)

    answer = wait_until(flower.without_password)

    assert answer == 401


class _Flower:
    """Flower over HTTP, as an admin's browser reads it."""

    def __init__(self, fleet: WholeFleet) -> None:
        known = json.loads((fleet.data / "up.json").read_text())
        self._url = f"http://127.0.0.1:{known['flower_port']}"
        self._auth = ("fleet", known["flower_password"])

    def workers(self) -> dict[str, Any]:
        return dict(self._get("/api/workers?refresh=1") or {})

    def tasks(self) -> dict[str, Any]:
        return dict(self._get("/api/tasks") or {})

    def waiting(self, queue: str) -> int:
        page = httpx.get(f"{self._url}/broker", auth=self._auth, verify=False).text
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
            answer = httpx.get(f"{self._url}{path}", auth=self._auth, timeout=15, verify=False)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None
