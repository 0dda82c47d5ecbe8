"""The database or the control plane unavailable for a while, or killed at any point: no run is lost or duplicated.

Each long form has a short one that `make test` runs.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.chaos import invariants
from tests.chaos.facts import Facts, look
from tests.chaos.fleet_under_load import ROLES, FleetUnderLoad, Size
from tests.chaos.invariants import Findings
from tests.chaos.load import Load
from tests.chaos.parts import Role
from tests.support import wait_until

SETTLE_SECONDS = 240.0


@dataclass
class Stage:
    """A fleet under load."""

    fleet: FleetUnderLoad
    load: Load
    never: threading.Event = field(default_factory=threading.Event)

    def submit(self, count: int) -> None:
        for _ in range(count):
            self.load.submit(self.never)

    def facts(self) -> Facts:
        return look(self.fleet.database)

    def running(self, count: int) -> None:
        """Wait until this many runs are running."""
        wait_until(lambda: len(self.facts().running()) >= count, seconds=90, every=0.3)

    def end_roles(self, names: Sequence[str]) -> None:
        for name in names:
            self.fleet.roles[name].end(signal.SIGKILL)

    def start_roles(self, names: Sequence[str]) -> None:
        for name in names:
            self.fleet.roles[name].start()

    def api(self) -> httpx.Response:
        """The API's answer to a request for the orders."""
        variables = self.fleet._fleet.variables
        bearer = {"Authorization": f"Bearer {variables['FLEET_API_TOKEN']}"}
        return httpx.get(
            f"{variables['FLEET_URL']}/api/v1/orders", headers=bearer, timeout=30, trust_env=False, verify=False
        )

    def settled(self) -> Findings:
        """The findings once every order has ended and every event has arrived."""
        wait_until(self._is_settled, seconds=SETTLE_SECONDS, every=1.0)
        late = [follower.order_id for follower in self.load.followers if not follower.leave(30)]
        return invariants.examine(self.fleet, self.load, late_followers=late)

    def _is_settled(self) -> bool:
        ended = all(order.ended for order in self.facts().orders.values())
        return ended and not invariants.unsent(self.fleet)


@pytest.fixture
def on_stage(tmp_path: Path) -> Iterator[Callable[[Size], Stage]]:
    """A function that starts a fleet; the whole fleet ends with the test."""
    fleets: list[FleetUnderLoad] = []

    def start(size: Size) -> Stage:
        fleet = FleetUnderLoad(tmp_path / f"fleet {len(fleets)}", size)
        fleets.append(fleet)
        fleet.start()
        return Stage(fleet, Load(fleet, followers=1))

    yield start
    for fleet in fleets:
        fleet.close()


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_outages_of_seconds_and_kills_of_the_control_plane_cost_no_run(on_stage: Callable[[Size], Stage]) -> None:
    stage = on_stage(Size(drones=2, slots=2, step_seconds=0.4))
    stage.submit(4)
    stage.running(2)

    answer = database_gone(stage, 5.0)
    left = ended_by_themselves(stage)
    stage.submit(2)
    control_plane_gone(stage, 8.0)
    kill_at_random(stage, 3, _seed(3))

    found = stage.settled()
    assert (answer.status_code, answer.json()["code"]) == (503, "E-DB-UNREACHABLE")
    assert (found.broken, left) == ([], [])
    assert (found.statuses, found.lost_runs, found.unpushed) == ({"succeeded": 9}, 0, {})


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(1200)
def test_a_database_that_is_gone_for_ninety_seconds_costs_no_run(on_stage: Callable[[Size], Stage]) -> None:
    stage = on_stage(Size(drones=2, slots=1, step_seconds=5.0))
    stage.submit(3)
    stage.running(2)

    answer = database_gone(stage, 90.0)

    found = stage.settled()
    assert (answer.status_code, answer.json()["code"]) == (503, "E-DB-UNREACHABLE")
    assert (found.broken, ended_by_themselves(stage)) == ([], [])
    assert (found.statuses, found.lost_runs, found.runs) == ({"succeeded": 3}, 0, 3)


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("step_seconds", [0.5, 10.0])
def test_a_control_plane_that_is_gone_for_ninety_seconds_costs_no_run(
    on_stage: Callable[[Size], Stage], step_seconds: float
) -> None:
    stage = on_stage(Size(drones=2, slots=1, step_seconds=step_seconds))
    stage.submit(4)
    stage.running(2)

    control_plane_gone(stage, 90.0)

    found = stage.settled()
    assert found.broken == []
    assert (found.statuses, found.lost_runs, found.unpushed) == ({"succeeded": 4}, 0, {})


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_control_plane_that_is_killed_twenty_times_loses_and_doubles_nothing(
    on_stage: Callable[[Size], Stage],
) -> None:
    stage = on_stage(Size(drones=2, slots=2, step_seconds=0.2))
    stage.submit(10)
    stage.running(2)

    kill_at_random(stage, 20, _seed(20))

    found = stage.settled()
    assert found.broken == []
    assert (found.statuses, found.lost_runs) == ({"succeeded": 30}, 0)


def database_gone(stage: Stage, seconds: float) -> httpx.Response:
    """Stop the database for this time; return the API's answer meanwhile."""
    stage.fleet.postgres.stop()
    answer = stage.api()
    time.sleep(seconds)
    stage.fleet.postgres.start()
    return answer


def control_plane_gone(stage: Stage, seconds: float) -> None:
    """Kill the whole control plane, and start it again after this time."""
    stage.end_roles(ROLES)
    time.sleep(seconds)
    stage.start_roles(ROLES)


def kill_at_random(stage: Stage, kills: int, seed: int) -> None:
    """Kill one role or all of them at random times, restart them after a random pause, and submit an order each time.

    In the second half the control plane is one process, `fleet serve --role all`.
    """
    numbers = random.Random(seed)
    for number in range(kills):
        if number == kills // 2:
            as_one_process(stage)
        names = list(stage.fleet.roles)
        doomed = numbers.choice([*([name] for name in names), names])
        time.sleep(numbers.uniform(0.2, 3.0))
        stage.end_roles(doomed)
        time.sleep(numbers.uniform(0.0, 1.5))
        stage.start_roles(doomed)
        stage.submit(1)


def as_one_process(stage: Stage) -> None:
    """Replace the control plane's processes with one `fleet serve --role all`."""
    environment = stage.fleet.roles["api"].environment
    stage.end_roles(list(stage.fleet.roles))
    stage.fleet.roles = {"all": Role("all", environment, stage.fleet.root / "all.log")}
    stage.start_roles(["all"])


def ended_by_themselves(stage: Stage) -> list[str]:
    """Roles that exited during an outage without being killed."""
    return [name for name, role in stage.fleet.roles.items() if not role.alive]


def _seed(default: int) -> int:
    return int(os.environ.get("CHAOS_SEED") or default)
