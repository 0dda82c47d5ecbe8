"""The database or the control plane unavailable for a while, or killed at any point: no run is lost or duplicated."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.fleet_under_load import FleetUnderLoad, Size
from tests.chaos.parts import Role
from tests.chaos.stage import Stage, staged

pytestmark = [pytest.mark.chaos, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A fleet of two drones; the parameter: slots of each, and seconds of a step."""
    slots, step_seconds = request.param
    with staged(FleetUnderLoad(tmp_path / "fleet", Size(drones=2, slots=slots, step_seconds=step_seconds))) as made:
        yield made


@pytest.mark.parametrize("stage", [(2, 0.4)], indirect=True)
def test_outages_of_seconds_and_kills_of_the_control_plane_cost_no_run(stage: Stage) -> None:
    stage.submit(4)
    stage.running(2)
    database_gone(stage, 5.0)
    stage.submit(2)
    stage.control_plane_gone(8.0)
    kill_at_random(stage, 3, _seed(3))
    assert stage.all_succeeded().lost_runs == 0


@pytest.mark.parametrize("stage", [(1, 5.0)], indirect=True)
def test_a_database_that_is_gone_for_ninety_seconds_costs_no_run(stage: Stage) -> None:
    stage.submit(3)
    stage.running(2)
    database_gone(stage, 90.0)
    assert stage.all_succeeded().runs == 3


@pytest.mark.parametrize("stage", [(1, 0.5), (1, 10.0)], indirect=True)
def test_a_control_plane_that_is_gone_for_ninety_seconds_costs_no_run(stage: Stage) -> None:
    stage.submit(4)
    stage.running(2)
    stage.control_plane_gone(90.0)
    assert stage.all_succeeded().lost_runs == 0


@pytest.mark.parametrize("stage", [(2, 0.2)], indirect=True)
def test_a_control_plane_that_is_killed_twenty_times_loses_and_doubles_nothing(stage: Stage) -> None:
    stage.submit(10)
    stage.running(2)
    kill_at_random(stage, 20, _seed(20))
    assert stage.all_succeeded().lost_runs == 0


def database_gone(stage: Stage, seconds: float) -> None:
    """Stop the database for this time; the API says so meanwhile, and no role ends."""
    stage.fleet.postgres.stop()
    answer = stage.api()
    assert (answer.status_code, answer.json()["code"]) == (503, "E-DB-UNREACHABLE")
    time.sleep(seconds)
    stage.fleet.postgres.start()
    assert all(role.alive for role in stage.fleet.roles.values())


def kill_at_random(stage: Stage, kills: int, seed: int) -> None:
    """Kill one role or all of them at random times, restart them after a random pause, and submit an order each time.

    In the second half the control plane is one process, `fleet serve --role all`.
    """
    numbers = random.Random(seed)
    for number in range(kills):
        if number == kills // 2:
            environment = stage.fleet.roles["api"].environment
            stage.end_roles(list(stage.fleet.roles))
            stage.fleet.roles = {"all": Role("all", environment, stage.fleet.root / "all.log")}
            stage.start_roles(["all"])
        names = list(stage.fleet.roles)
        doomed = numbers.choice([*([name] for name in names), names])
        time.sleep(numbers.uniform(0.2, 3.0))
        stage.end_roles(doomed)
        time.sleep(numbers.uniform(0.0, 1.5))
        stage.start_roles(doomed)
        stage.submit(1)


def _seed(default: int) -> int:
    return int(os.environ.get("CHAOS_SEED") or default)
