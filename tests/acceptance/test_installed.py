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
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS
from tests.support.documents import ROOT
from tests.support.installed import (
    SERVER,
    Installation,
    base_installation,
    build,
    distributions,
    install,
    server_installation,
)
from tests.support.licenses import required
from tests.support.local_runs import FIXED, MEND, MODEL, make_repository
from tests.support.machines import ORDINARY, Machine, needs_root
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

__all__ = ["base_installation", "distributions", "server_installation"]
pytestmark = pytest.mark.timeout(280)
PACKAGES = ("control_plane", "drone", "shared")
_IN_PACKAGES = tuple(f"{each}/" for each in PACKAGES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """A fleet of the full installation, without drones, with a scripted model and a project."""
    root = tmp_path_factory.mktemp("full")
    running = WholeFleet(root / "fleet", drones=0)
    with ScriptedServer(SCRIPTS) as model:
        try:
            running.start()
            running.add_work(model.url, calc_project(root / "calc.git").as_uri())
            yield running
        finally:
            running.close()


# --- what is in it ------------------------------------------------------------------------------


def test_the_wheel_has_every_file_of_the_packages_and_no_tests(distributions: Sequence[Path]) -> None:
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


def test_two_builds_in_different_directories_at_different_times_are_the_same_bytes(
    distributions: Sequence[Path], tmp_path: Path
) -> None:
    """The second build is made from the sdist, which therefore has everything that a build needs."""
    with tarfile.open(distributions[1]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    for path in source.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(path.stat().st_mode & 0o700)

    again = build(tmp_path / "dist", source, TZ="Pacific/Auckland")

    assert [path.name for path in again] == [path.name for path in distributions]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in distributions]


@pytest.mark.parametrize("program", ["fleet", "drone"])
def test_each_program_prints_the_version_of_the_wheel(
    program: str, base_installation: Installation, distributions: Sequence[Path], home: Path
) -> None:
    assert base_installation.run(program, "--version", home=home).stdout == f"{program} {_version(distributions)}\n"


# --- the base installation ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["up"],
        ["serve"],
        ["flower"],
        ["db", "upgrade"],
        ["db", "status"],
        ["keys", "ls"],
        ["keys", "rotate", "master"],
        ["api-token", "add", "--bootstrap"],
    ],
    ids=" ".join,
)
def test_a_command_of_the_server_says_what_to_install(
    base_installation: Installation, distributions: Sequence[Path], home: Path, words: list[str]
) -> None:
    done = base_installation.run("fleet", *words, home=home)

    assert done.returncode == 2
    assert "E-SERVER-PART" in done.stderr
    assert f"pip install '{distributions[0]}[server]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(home.rglob("*.log")) == []


def test_a_program_that_made_the_environment_is_named_in_what_to_install(
    base_installation: Installation, home: Path
) -> None:
    receipt = base_installation.path / "uv-receipt.toml"
    receipt.touch()
    try:
        done = base_installation.run("fleet", "up", home=home)
    finally:
        receipt.unlink()

    assert "uv tool install --force '" in done.stderr


def test_the_base_installation_has_none_of_the_servers_packages(base_installation: Installation) -> None:
    code = "import fastapi, sqlalchemy"
    done = subprocess.run([base_installation.python, "-c", code], capture_output=True, text=True, check=False)

    assert "ModuleNotFoundError" in done.stderr


def test_every_module_that_the_base_installation_needs_can_be_imported(base_installation: Installation) -> None:
    code = """
import importlib, pkgutil, sys
client = ("cli", "client", "declarations", "documents", "validation")
for name in ("shared", "drone", *(f"control_plane.{each}" for each in client)):
    for each in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        # A file that is copied into containers, where its neighbour is at the top.
        if each.name != "drone.sandbox.container.inside":
            importlib.import_module(each.name)
print(importlib.import_module("drone").__file__)
"""
    done = subprocess.run([base_installation.python, "-P", "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str(base_installation.path))


def test_drone_doctor_finds_all_that_a_drone_needs(base_installation: Installation, home: Path) -> None:
    done = base_installation.run("drone", "doctor", "--json", home=home)
    states = {check["code"]: check["state"] for check in json.loads(done.stdout)["checks"]}

    assert {code for code, state in states.items() if state == "FAIL"} == {"D-REGISTERED"}
    assert states["D-LITELLM"] == "OK"


def test_drone_run_works_without_a_control_plane(base_installation: Installation, home: Path, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project")
    with ScriptedServer(MEND) as model:
        words = ("--repo", str(repository), "--model", MODEL, "--api-base", model.url, "--json")
        done = base_installation.run("drone", "run", "Fix the sum", *words, home=home)

    assert done.returncode == 0, done.stderr
    order = json.loads(done.stdout)
    assert order["status"] == "succeeded"
    assert f"+{FIXED.splitlines()[1]}" in order["patch"]


def test_a_drone_of_the_base_installation_works_for_a_fleet_and_its_fleet_is_the_client(
    base_installation: Installation, distributions: Sequence[Path], fleet: WholeFleet, home: Path
) -> None:
    token = fleet.fleet("token", "add").stdout.strip()
    joined = base_installation.run(
        "drone", "register", "--url", fleet.url, "--name", "small", home=home, env={"DRONE_TOKEN": token}
    )
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
        submitted = base_installation.run(
            "fleet", "submit", "Fix it, script:fix", "--drone", "small", "--follow", home=home, env=server
        )
        listed = base_installation.run("fleet", "orders", "--json", home=home, env=server)
        shown = base_installation.run("fleet", "show", "@last", "--json", home=home, env=server)
        doctor = base_installation.run("fleet", "doctor", home=home, env=server)
    finally:
        drone.send_signal(signal.SIGQUIT)
        drone.wait(60)

    assert submitted.returncode == 0, submitted.stderr
    order = json.loads(shown.stdout)
    assert (order["status"], order["drone"]) == ("succeeded", "small")
    assert [each["id"] for each in json.loads(listed.stdout)] == [order["id"]]
    assert f"{fleet.url}, version {_version(distributions)}, as admin" in doctor.stdout


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


def test_the_base_installation_is_at_least_50_mb_smaller() -> None:
    base, server = required(""), required(SERVER)
    files = [Path(str(file.locate())) for name in set(server) - set(base) for file in server[name].files or ()]

    # On the disk, where the many small files count for more than their length.
    assert sum(path.stat().st_blocks * 512 for path in files if path.is_file()) > 50_000_000


# --- the full installation ----------------------------------------------------------------------


def test_the_demo_runs_from_the_installed_wheel(server_installation: Installation, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "deploy" / "demo", tmp_path / "demo")

    done = _demo([str(server_installation.python)], tmp_path, server_installation.environment(tmp_path))

    assert done.returncode == 0, done.stdout
    assert "No process is left" in done.stdout


def test_the_demo_runs_from_the_installed_wheel_as_another_user(distributions: Sequence[Path]) -> None:
    needs_root()
    top = Path(tempfile.mkdtemp(prefix="installed-"))
    try:
        top.chmod(0o755)
        made = install(top / "dronefleet", distributions[0], SERVER)
        home, room = top / "home", top / "room"
        room.mkdir()
        shutil.copytree(ROOT / "deploy" / "demo", home / "demo")
        for path in (home, *home.rglob("*")):
            os.chown(path, ORDINARY, ORDINARY)
        user = Machine(Path("/etc/resolv.conf"), room, processes=4096, user=ORDINARY)

        done = _demo([*user.words, str(made.python)], home, made.environment(home))
    finally:
        shutil.rmtree(top)

    assert done.returncode == 0, done.stdout
    assert "No process is left" in done.stdout


def test_the_manual_page_is_found_beside_the_program(base_installation: Installation) -> None:
    assert (base_installation.path / "share" / "man" / "man1" / "fleet.1").read_text().startswith('.\\"')


def _version(distributions: Sequence[Path]) -> str:
    """As the wheel's name has it."""
    return distributions[0].name.split("-")[1]


def _demo(python: list[str], directory: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The demo's script, copied to `directory`, so that it has no checkout beside it."""
    return subprocess.run(
        [*python, str(directory / "demo" / "demo.py")],
        cwd=directory,
        env={**environment, "TMPDIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
