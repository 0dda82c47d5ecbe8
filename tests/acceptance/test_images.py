"""The images that a team deploys, built on an empty Debian and run as containers on PostgreSQL and Redis.

An order is done; everything is saved, destroyed and restored on other empty containers; a second order is done.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from shared.names import new_id
from tests.acceptance.scripts import shell
from tests.support import free_port, needs, wait_until
from tests.support.containers import engine_environment
from tests.support.documents import ROOT
from tests.support.git_servers import GitHttpServer, serving
from tests.support.repositories import calc_project
from tests.support.transcripts import transcript_problems
from tests.support.whole_fleet import ExternalFleet

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

BASE, SERVICES = "localhost/dronefleet-base", "localhost/dronefleet-services"
PROGRAMS = "ca-certificates,python3,python3-venv"
"""What the Dockerfiles expect of their base."""
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
AS_HERE = ("--network=host", f"--ulimit=nofile={FILES}:{FILES}", "--ulimit=nproc=4096:4096")
"""With the network and the limits of this machine, whose root may not be allowed to raise them."""
PASSWORD = "of-the-broker-for-this-test"
SCRIPT = [shell("sed -i 's/a - b/a + b/' calc.py"), {"text": "Solved."}]
DATABASE = """
set -e
install -d -o postgres /var/lib/fleet
exec su postgres -c '
  cd /usr/lib/postgresql/*/bin
  ./initdb -D /var/lib/fleet/data -A trust -E utf8 --no-sync >/dev/null
  exec ./postgres -D /var/lib/fleet/data -p {port} -k /tmp -c listen_addresses=127.0.0.1'
"""


def podman(*words: str, seconds: float = 120) -> str:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=False, timeout=seconds)
    assert done.returncode == 0, f"podman {' '.join(words)}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Both images, on a base that mmdebstrap makes, in a storage of their own."""
    needs("podman")
    needs("mmdebstrap")
    if os.geteuid() != 0:
        pytest.skip("a root file system is made by root alone")
    directory = tmp_path_factory.mktemp("images")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in engine_environment(directory).items():
            patch.setenv(name, value)
        for image, programs in ((BASE, PROGRAMS), (SERVICES, "postgresql,redis-server")):
            make_root(directory / "root.tar", image, programs)
        subprocess.run(["make", "dist", f"PYTHON={sys.executable}"], cwd=ROOT, check=True, capture_output=True)
        build(directory, "control-plane")
        build(directory, "drone")
        yield
        for words in (("rm", "--all"), ("volume", "rm", "--all"), ("rmi", "--all")):
            subprocess.run(["podman", *words, "--force"], capture_output=True, check=False, timeout=300)


def make_root(archive: Path, image: str, programs: str) -> None:
    options = ["--variant=minbase", f"--include={programs}", "bookworm", str(archive)]
    made = subprocess.run(["mmdebstrap", *options], capture_output=True, text=True, check=False, timeout=1200)
    assert made.returncode == 0, made.stderr[-3000:]
    podman("import", "--quiet", str(archive), image, seconds=300)
    archive.unlink()


def build(directory: Path, name: str) -> None:
    """As the first lines of the Dockerfile say, with this machine's network and its authorities."""
    (directory / "pip.conf").write_text(f"[global]\ncert = {BUNDLE}\n")
    given = [f"{BUNDLE}:{BUNDLE}:ro", f"{directory / 'pip.conf'}:/etc/pip.conf:ro"]
    podman(
        "build",
        "--network=host",
        "--quiet",
        *(f"--volume={each}" for each in given),
        f"--build-arg=BASE={BASE}",
        f"--file={ROOT / 'deploy' / f'Dockerfile.{name}'}",
        f"--tag=dronefleet-{name}",
        str(ROOT),
        seconds=1800,
    )


@dataclass
class Containers:
    """A control plane on PostgreSQL and Redis, and drones, each in a container with the network of this machine."""

    fleet: ExternalFleet
    prefix: str = field(default_factory=lambda: new_id()[:6])
    ports: dict[str, int] = field(default_factory=dict)

    def start_services(self) -> None:
        self.ports = {each: free_port() for each in ("database", "broker", "http")}
        self.run("database", SERVICES, "sh", "-c", DATABASE.format(port=self.ports["database"]))
        words = ("redis-server", "--port", str(self.ports["broker"]), "--requirepass", PASSWORD, "--save", "")
        self.run("broker", SERVICES, *words)
        wait_until(lambda: "ready to accept connections" in self.logs("database"), seconds=60)

    @property
    def environment(self) -> dict[str, str]:
        broker = f"127.0.0.1:{self.ports['broker']}/0"
        return {
            "FLEET_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{self.ports['database']}/postgres",
            "FLEET_BROKER_URL": f"redis://default:{PASSWORD}@{broker}",
            "FLEET_PUBLIC_BROKER_URL": f"redis://{broker}",
            "FLEET_MASTER_KEY_FILE": "/var/lib/dronefleet/master.key",
            "FLEET_BLOB_DIR": "/var/lib/dronefleet/blobs",
            "FLEET_PORT": str(self.ports["http"]),
        }

    def once(self, *words: str, volumes: Mapping[str, str] | None = None) -> str:
        """A command of the control plane in a container of its own."""
        return podman("run", "--rm", *self._options("fleet", volumes), "dronefleet-control-plane", *words, seconds=300)

    def serve(self) -> None:
        name = self.name("serve")
        podman("run", "--detach", f"--name={name}", *self._options("fleet"), "dronefleet-control-plane")
        url = f"http://127.0.0.1:{self.ports['http']}"
        self.fleet.variables["FLEET_URL"] = url
        wait_until(self.answers, seconds=60)

    def answers(self) -> bool:
        import httpx

        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.fleet.url}/api/v1/health", timeout=2, trust_env=False).status_code == 200
        return False

    def add_drone(self, name: str) -> None:
        token = self.fleet.fleet("token", "create").stdout.strip()
        volume = f"--volume={self.name(name)}:/var/lib/drone"
        register = ("drone", "register", "--url", self.fleet.url, "--name", name)
        podman("run", "--rm", *AS_HERE, volume, f"--env=DRONE_TOKEN={token}", "dronefleet-drone", *register)
        podman("run", "--detach", *AS_HERE, f"--name={self.name(name)}", volume, "dronefleet-drone")

    def inside(self, name: str, *words: str) -> str:
        return podman("exec", self.name(name), *words, seconds=300)

    def run(self, name: str, image: str, *words: str) -> None:
        podman("run", "--detach", *AS_HERE, f"--name={self.name(name)}", image, *words)

    def logs(self, name: str) -> str:
        done = subprocess.run(["podman", "logs", self.name(name)], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def name(self, part: str) -> str:
        return f"{self.prefix}-{part}"

    def destroy(self) -> None:
        """Containers and volumes, with all that is in them."""
        podman("rm", "--all", "--force", "--time", "5", seconds=300)
        podman("volume", "rm", "--all", "--force")

    def _options(self, volume: str, volumes: Mapping[str, str] | None = None) -> list[str]:
        mounted = {self.name(volume): "/var/lib/dronefleet", **(volumes or {})}
        return [
            *AS_HERE,
            "--read-only",
            "--tmpfs=/tmp",
            "--cap-drop=ALL",
            *(f"--volume={source}:{target}" for source, target in mounted.items()),
            *(f"--env={name}={value}" for name, value in self.environment.items()),
        ]


def test_an_order_a_backup_a_restore_and_a_second_order_in_containers(images: None, tmp_path: Path) -> None:
    remote = calc_project(tmp_path / "served" / "calc.git")
    server = GitHttpServer(tmp_path / "served")
    fleet = ExternalFleet(tmp_path / "external")
    fleet.root.mkdir()
    with ScriptedServer({"fix": SCRIPT}) as model, serving(server):
        first = Containers(fleet)
        first.start_services()
        first.once("fleet", "db", "upgrade")
        first.serve()
        fleet.variables["FLEET_API_TOKEN"] = first.inside("serve", "fleet", "api-token", "add", "--bootstrap").strip()
        for name in ("mila", "oka"):
            first.add_drone(name)
        fleet.online("mila", "oka", seconds=120)
        fleet.add_work(model.url, server.url("calc.git"))
        before = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])
        assert first.inside("mila", "drone", "status", "--check")
        assert first.inside("mila", "id", "-u").strip() == "10002"
        first.inside("serve", "fleet", "backup", "create", "/var/lib/dronefleet/saved", "--with-keys")
        podman("cp", f"{first.name('serve')}:/var/lib/dronefleet/saved", str(tmp_path / "saved"))
        first.destroy()

        for path in (tmp_path / "saved", *(tmp_path / "saved").rglob("*")):
            shutil.chown(path, 10001, 10001)
        second = Containers(fleet)
        second.start_services()
        second.once("fleet", "restore", "/saved", volumes={str(tmp_path / "saved"): "/saved"})
        second.serve()
        after = fleet.order(before["id"])
        second.add_drone("nova")
        fleet.online("nova", seconds=120)
        again = fleet.ended(fleet.submit("Fix the test, script:fix", "--drone", "nova")["id"])
        second.destroy()

    kept = ("steps", "patch", "status", "branch", "stats")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert (before["status"], again["status"], again["drone"]) == ("succeeded", "succeeded", "nova")
    assert [problem for order in (after, again) for problem in transcript_problems(order)] == []
    branches = subprocess.check_output(["git", "-C", remote, "branch", "--list", "fleet/*"], text=True)
    assert branches.count("fleet/") == 2
