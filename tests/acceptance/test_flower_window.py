"""Flower of a whole fleet: whom it lets in, and what it shows after it was killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import httpx
import psutil
import pytest

from drone.installation.home import DroneHome
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.ending import wait_for_end
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
FINAL = {"SUCCESS", "FAILURE", "RETRY", "REVOKED"}
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[WholeFleet]:
    """A fleet with Flower and one drone."""
    root = tmp_path_factory.mktemp("flower")
    with closing(WholeFleet(root / "fleet", options=("--flower-port", "0"))) as started:
        started.start()
        started.add_work(model.url, calc_project(root / "calc.git").as_uri())
        yield started


def test_flower_refuses_the_credentials_of_a_drone(fleet: WholeFleet) -> None:
    home, flower = DroneHome(fleet.data / "drones" / "local-1"), _Flower(fleet)
    credentials = home.credentials()
    assert wait_until(lambda: flower.status("GET", "/api/workers")) == 401
    password = str(httpx.URL(credentials.broker_url).password)
    tried = [(home.config().drone_id, password), ("fleet", password), ("fleet", credentials.api_token), ("fleet", "")]

    answers = [flower.status(method, path, auth=auth) for auth in tried for method, path in FLOWER_ADDRESSES]
    bearer = {"Authorization": f"Bearer {credentials.api_token}"}
    answers += [flower.status(method, path, headers=bearer) for method, path in FLOWER_ADDRESSES]

    assert answers == [401] * 5 * len(FLOWER_ADDRESSES)
    assert [flower.status("GET", path, auth=flower.auth) for path in ("/api/workers", "/metrics")] == [200, 200]


def test_flower_is_started_again_after_it_was_killed_and_shows_how_all_runs_ended(fleet: WholeFleet) -> None:
    flower = _Flower(fleet)
    wait_until(lambda: flower.status("GET", "/api/workers"))
    before = fleet.ended(fleet.submit("Note it, script:note")["id"])
    flower.kill(fleet)
    after = fleet.ended(fleet.submit("Ask in vain, script:refused")["id"])
    held = fleet.submit("Wait, script:hold")["id"]
    wait_until(lambda: fleet.order(held)["status"] == "running")
    fleet.json("cancel", held, "--wait")

    runs = [order["runs"][0]["id"] for order in (before, after, fleet.order(held))]
    states = wait_until(lambda: (known := flower.states(*runs)) and FINAL.issuperset(known) and known, seconds=120)
    assert states == ["SUCCESS", "FAILURE", "REVOKED"]


class _Flower:
    """Flower over HTTP."""

    def __init__(self, fleet: WholeFleet) -> None:
        known = json.loads((fleet.data / "up.json").read_text())
        self.auth = ("fleet", known["flower_password"])
        self._port = int(known["flower_port"])

    def kill(self, fleet: WholeFleet) -> None:
        assert fleet.process is not None
        below = psutil.Process(fleet.process.pid).children(recursive=True)
        [own] = [each for each in below if self._port in _listening(each)]
        own.kill()
        wait_for_end(own.pid)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response | None:
        """Its answer; None while it does not answer."""
        with suppress(httpx.TransportError):
            return httpx.request(method, f"http://127.0.0.1:{self._port}/flower{path}", timeout=60, **options)
        return None

    def states(self, *run_ids: str) -> list[str] | None:
        """The states of these runs; None while Flower does not answer or reads its events."""
        answer = self.ask("GET", "/api/tasks", auth=self.auth)
        if answer is None or not answer.is_success:
            return None
        return [answer.json().get(each, {}).get("state", "") for each in run_ids]

    def status(self, method: str, path: str, **options: Any) -> int | None:
        answer = self.ask(method, path, **options)
        return None if answer is None else answer.status_code


def _listening(process: psutil.Process) -> set[int]:
    """The ports at which a process listens."""
    return {each.laddr.port for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN}
