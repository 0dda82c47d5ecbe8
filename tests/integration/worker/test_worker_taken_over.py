"""A real drone that is frozen while another one takes its order over and finishes it: thawed, it changes nothing."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from control_plane.db.drones import Drone
from control_plane.db.runs import Step
from control_plane.declarations.projects import ProjectRequest
from control_plane.declarations.providers import ProviderRequest
from control_plane.declarations.tokens import JoinTokenRequest
from control_plane.documents.orders import OrderDocument
from control_plane.operations import projects, providers
from control_plane.operations.access import tokens
from control_plane.operations.drones import registration
from drone.installation.home import DroneConfig, DroneHome
from drone.installation.workspace_marker import claim_root
from drone.runs.lease import VALID_SECONDS
from drone.workspace import copy_owner_config
from shared import names
from shared.envelope import Binding, open_envelope, public_key
from shared.events import ABILITIES
from shared.registration import Credentials, JoinTokenString, RegistrationRequest
from tests.support import wait_until
from tests.support.control_stand_in import API_TOKEN, BlobServer
from tests.support.drones import DroneUnderTest
from tests.support.freezing import frozen
from tests.support.planes import Plane
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory
from tests.support.stand_in import DroneStandIn

LONG_AGO = timedelta(minutes=5)
WORKS = "echo begun > made-here; for i in $(seq 300); do echo $i; sleep 0.5; done"


@dataclass
class Real:
    """A real worker process of a drone that the plane knows; its blobs go to a stand-in."""

    id: str
    name: str
    drone: DroneUnderTest


@pytest.fixture
def plane(live_plane: Plane) -> Plane:
    """Components in threads: the drone is a process."""
    return live_plane


@pytest.fixture
def real(plane: Plane, tmp_path: Path) -> Iterator[Callable[[str], Real]]:
    """Give a function that registers a drone by the door that all take, and starts its worker."""
    made: list[DroneUnderTest] = []
    with BlobServer() as blobs:

        def start(name: str) -> Real:
            home = DroneHome(tmp_path / name)
            config = register(plane, home, name, blobs.url)
            drone = DroneUnderTest(plane.core, home, config)  # type: ignore[arg-type] - of it only the broker is asked
            made.append(drone)
            drone.start_worker()
            drone.wait_consuming(seconds=60)
            wait_until(lambda: plane.rows(Drone, Drone.id == config.drone_id)[0].last_seen_at)
            return Real(config.drone_id, name, drone)

        yield start
        for drone in made:
            drone.close()


def register(plane: Plane, home: DroneHome, name: str, server_url: str) -> DroneConfig:
    key = home.make_private_key()
    token = JoinTokenString.parse(tokens.create_join_token(plane.core, plane.admin, JoinTokenRequest()).token or "")
    assert token is not None
    request = RegistrationRequest(
        secret=token.secret,
        name=name,
        machine_id=home.machine_id(),
        public_key=base64.b64encode(public_key(key)).decode(),
        sandbox="none",
        version="0",
        host="testhost",
        abilities=ABILITIES,
    )
    answer = registration.register(plane.core, request)
    recipients = {answer.credentials.partition(".")[0]: key}
    expect = Binding(direction="credentials", drone=answer.drone_id)
    sender = base64.b64decode(answer.public_key)
    opened = open_envelope(answer.credentials, recipients=recipients, sender=sender, expect=expect)
    broker_url = Credentials.model_validate_json(opened.body).broker_url
    claim_root(home.default_workspace)
    config = DroneConfig(
        drone_id=answer.drone_id,
        name=name,
        server_url=server_url,
        control_plane_public_key=answer.public_key,
        concurrency=1,
        sandbox="none",
        workspace=str(home.default_workspace),
        host="testhost",
        machine_id=home.machine_id(),
    )
    home.save(config, Credentials(broker_url=broker_url, api_token=API_TOKEN))
    copy_owner_config(home.git_config_file, os.environ)
    return config


def add_work(plane: Plane, repository: Path, model_url: str) -> None:
    """A project `demo` on a repository of the test, for a scripted model."""
    request = ProviderRequest(name="local", model="openai/scripted", api_base=model_url, api_key="sk-secret")
    providers.add(plane.core, plane.admin, request)
    project = ProjectRequest(slug="demo", git_url=f"file://{repository}", provider="local")
    projects.add(plane.core, plane.admin, project)


def fall_silent(plane: Plane, drone_id: str) -> None:
    """As after a minute without a beat: the lease key is gone, and the last sign of life is old."""
    plane.core.broker.redis.delete(names.lease_key(drone_id))
    plane.edit(Drone, drone_id, last_seen_at=plane.core.clock.now() - LONG_AGO)


def take_over(plane: Plane, order_id: str, other: DroneStandIn) -> OrderDocument:
    """Another drone gets the order, and finishes it."""
    again = wait_until(lambda: other.renew_lease() or other.take(), seconds=60)
    assert (again.order_id, again.generation) == (order_id, 2)
    other.do(again)
    return wait_until(lambda: (found := plane.order(order_id)).status == "succeeded" and found)


def of_the_order(order: OrderDocument) -> dict[str, object]:
    """What a late run must not change."""
    return order.model_dump(exclude={"runs", "steps", "stats", "late_refs"})


def refs(repository: Path) -> list[str]:
    command = ["git", "-C", str(repository), "for-each-ref", "--format=%(refname:short)", "refs/heads"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a_thawed_drone_stops_and_keeps_its_work_under_a_ref_of_its_own(
    plane: Plane, real: Callable[[str], Real], repository: Path, scripted: ScriptedFactory
) -> None:
    plane.collector(), plane.supervisor(lost_after=3.0)
    add_work(plane, repository, scripted([shell(WORKS), {"text": "Done."}]).url)
    mila = real("mila")
    order_id = plane.submit(project="demo")
    wait_until(lambda: plane.order(order_id).doing.startswith("shell:"), seconds=150)
    run_id = plane.order(order_id).runs[0].id
    assert mila.drone.process is not None
    with frozen(mila.drone.process.pid):
        oka = plane.drone("oka")
        fall_silent(plane, mila.id)
        done = take_over(plane, order_id, oka)
    wait_until(lambda: f"run {run_id} was revoked by the control plane" in mila.drone.log())
    wait_until(lambda: plane.rows(Step, Step.run_id == run_id, Step.kind == "run_ended"), seconds=2 * VALID_SECONDS)
    late = f"fleet-late/{order_id}/1"
    after = plane.order(order_id)
    assert of_the_order(after) == of_the_order(done)
    assert ([run.status for run in after.runs], after.late_refs) == (["lost", "success"], [late])
    assert refs(repository) == [late, "main"]
