"""The wheel, installed outside the checkout: what is in it, what the base installation can do, and what it says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support.documents import ROOT
from tests.support.installed import SERVER, Installation, base_installation, build, distributions, install
from tests.support.machines import ORDINARY, Machine, needs_root
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

__all__ = ["base_installation", "distributions"]
pytestmark = pytest.mark.timeout(280)
PACKAGES = ("control_plane", "drone", "shared")
_IN_PACKAGES = tuple(f"{each}/" for each in PACKAGES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


def test_the_wheel_has_every_file_of_the_packages_and_no_tests_and_is_built_again_with_the_same_bytes(
    distributions: Sequence[Path], tmp_path: Path
) -> None:
    """The second build is made from the sdist, which therefore has everything that a build needs."""
    with zipfile.ZipFile(distributions[0]) as wheel:
        names = set(wheel.namelist())
    ours = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    beside = {name.partition("/")[2] for name in names if not name.startswith(_IN_PACKAGES)}
    assert ours - names == set()
    assert {name for name in names - ours if name.startswith(_IN_PACKAGES)} == {"shared/errors.md"}
    assert beside == {
        *("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "licenses/docs/licenses.md"),
        *("data/share/man/man1/fleet.1", "data/share/man/man1/drone.1"),
    }

    with tarfile.open(distributions[1]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    for path in source.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(path.stat().st_mode & 0o700)
    again = build(tmp_path / "dist", source, TZ="Pacific/Auckland")
    assert [path.name for path in again] == [path.name for path in distributions]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in distributions]


def test_the_base_installation_is_complete_and_names_what_to_install_for_the_server(
    base_installation: Installation, distributions: Sequence[Path], home: Path
) -> None:
    version = distributions[0].name.split("-")[1]
    for program in ("fleet", "drone"):
        assert base_installation.run(program, "--version", home=home).stdout == f"{program} {version}\n"
    assert (base_installation.path / "share" / "man" / "man1" / "fleet.1").read_text().startswith('.\\"')
    code = """
import importlib, importlib.util, pkgutil
for name in ("shared", "drone", "control_plane.cli", "control_plane.contract"):
    for each in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        # A file that is copied into containers, where its neighbour is at the top.
        if each.name != "drone.sandbox.container.inside":
            importlib.import_module(each.name)
print(*map(importlib.util.find_spec, ("fastapi", "sqlalchemy")), importlib.import_module("drone").__file__)
"""
    imported = subprocess.run([base_installation.python, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (imported.returncode, imported.stderr) == (0, "")
    assert imported.stdout.startswith(f"None None {base_installation.path}")

    doctor = base_installation.run("drone", "doctor", "--json", home=home)
    failed = {check["code"] for check in json.loads(doctor.stdout)["checks"] if check["state"] == "FAIL"}
    assert failed == {"D-REGISTERED"}
    for words in (("up",), ("db", "upgrade"), ("keys", "rotate", "master"), ("api-token", "add", "--bootstrap")):
        refused = base_installation.run("fleet", *words, home=home)
        assert (refused.returncode, "E-SERVER-PART" in refused.stderr) == (2, True), refused.stderr
        assert f"pip install '{distributions[0]}[server]'" in refused.stderr
    receipt = base_installation.path / "uv-receipt.toml"
    receipt.touch()
    try:
        refused = base_installation.run("fleet", "up", home=home)
    finally:
        receipt.unlink()
    assert "uv tool install --force '" in refused.stderr
    assert list(home.rglob("*.log")) == []


@pytest.mark.long
def test_a_drone_of_the_base_installation_works_for_a_fleet_and_its_fleet_is_the_client(
    base_installation: Installation,
    start_fleet: Callable[..., WholeFleet],
    model: ScriptedServer,
    home: Path,
    tmp_path: Path,
) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, calc_project(tmp_path / "calc.git").as_uri())
    token = {"DRONE_TOKEN": fleet.fleet("token", "add").stdout.strip()}
    joined = base_installation.run("drone", "register", "--url", fleet.url, "--name", "small", home=home, env=token)
    assert joined.returncode == 0, joined.stderr
    with (home / "drone.log").open("wb") as log:
        drone = subprocess.Popen(
            [base_installation.command("drone"), "start"],
            env=base_installation.environment(home),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    server = {"FLEET_URL": fleet.url, "FLEET_API_TOKEN": fleet.token}
    try:
        fleet.online("small")
        submitted = base_installation.run("fleet", "submit", "Fix it, script:fix", "--follow", home=home, env=server)
        shown = base_installation.run("fleet", "show", "@last", "--json", home=home, env=server)
    finally:
        drone.send_signal(signal.SIGQUIT)
        drone.wait(60)

    assert submitted.returncode == 0, submitted.stderr
    order = json.loads(shown.stdout)
    assert (order["status"], order["drone"]) == ("succeeded", "small")


@pytest.mark.long
def test_the_locked_releases_of_the_base_are_all_that_it_requires(distributions: Sequence[Path], home: Path) -> None:
    """As docs/install.md says, from a package index."""
    made = Installation(home / "dronefleet")
    subprocess.run([sys.executable, "-m", "venv", made.path], check=True)
    pip = [made.command("pip"), "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--require-hashes", "--requirement", ROOT / "requirements-base.lock"], check=True)
    subprocess.run([*pip, "install", "--no-index", "--no-deps", distributions[0]], check=True)
    checked = subprocess.run([*pip, "check"], capture_output=True, text=True, check=False)
    doctor = made.run("drone", "doctor", "--json", home=home)

    assert (checked.returncode, checked.stdout) == (0, "")
    assert [each["code"] for each in json.loads(doctor.stdout)["checks"] if each["state"] == "FAIL"] == ["D-REGISTERED"]


@pytest.mark.long
def test_the_demo_runs_from_the_installed_wheel_as_another_user(distributions: Sequence[Path]) -> None:
    """As this one, unless that is root. The demo's script is copied, so that it has no checkout beside it."""
    top = Path(tempfile.mkdtemp(prefix="installed-"))
    try:
        top.chmod(0o755)
        made = install(top / "dronefleet", distributions[0], SERVER)
        home, room = top / "home", top / "room"
        room.mkdir()
        shutil.copytree(ROOT / "deploy" / "demo", home / "demo")
        words: Sequence[str] = ()
        if os.geteuid() == 0:
            needs_root()
            for path in (home, *home.rglob("*")):
                os.chown(path, ORDINARY, ORDINARY)
            words = Machine(Path("/etc/resolv.conf"), room, processes=4096, user=ORDINARY).words
        done = subprocess.run(
            [*words, str(made.python), str(home / "demo" / "demo.py")],
            cwd=home,
            env={**made.environment(home), "TMPDIR": str(home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
            check=False,
        )
    finally:
        shutil.rmtree(top)

    assert done.returncode == 0, done.stdout
    assert "No process is left" in done.stdout
