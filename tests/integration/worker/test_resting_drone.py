"""An idle drone unloads the model library, and its next run starts without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from drone.runs import entry
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.drones import DroneUnderTest, Workshop
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "policy.toml"
    monkeypatch.setenv("DRONE_POLICY", str(file))
    return file


@pytest.fixture
def workshop(stand_in: ControlPlaneStandIn, make_drone: Callable[..., DroneUnderTest], repository: Path) -> Workshop:
    return Workshop(stand_in, make_drone(concurrency=2), repository)


def fork_servers(drone: DroneUnderTest) -> list[psutil.Process]:
    return [each for each in drone.processes() if "multiprocessing.forkserver" in " ".join(each.cmdline())]


def test_an_idle_drone_rests_and_its_next_run_starts_alone_and_the_one_after_it_from_the_server(
    workshop: Workshop, policy: Path, scripted: ScriptedFactory, tmp_path: Path
) -> None:
    fleet, drone = workshop.fleet, workshop.drone
    policy.write_text("[keep]\nmodel_library_minutes = 0\n")
    drone.start_worker()
    wait_until(lambda: "the model library is unloaded" in drone.log(), seconds=120)
    assert fork_servers(drone) == []

    policy.write_text('[keep]\nmodel_library_minutes = "none"\n')
    looked = tmp_path / "looked"
    slow = scripted([shell(f"echo begun; until [ -e {looked} ]; do sleep 0.1; done"), {"text": "Done."}])
    first = workshop.submit(slow.url)
    wait_until(lambda: workshop.printed(first, "begun"), seconds=60)
    run = drone.run_process(first.run_id)
    assert entry.__name__ in run.cmdline()
    drone.wait_warm()

    second = workshop.submit(slow.url)
    wait_until(lambda: workshop.printed(second, "begun"), seconds=60)
    assert entry.__name__ not in drone.run_process(second.run_id).cmdline()
    looked.touch()
    assert fleet.ended(first, seconds=60).status == fleet.ended(second, seconds=60).status == "success"
