"""Programs started in a directory that others wrote, such as a cloned repository: none of its code may run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.command_tree import BIN, clean_environment
from tests.support.documents import ROOT
from tests.support.local_runs import MEND, MODEL, make_repository
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.hostile, pytest.mark.timeout(280), pytest.mark.apart]

OURS = ("org", "shared", "drone", "control_plane", "tests")
CONFIGURATION = ("sitecustomize", "usercustomize", "celeryconfig", "flowerconfig", "settings")
LEAK = """
try:
    import posix
    file = posix.open({marker!r}, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600)
    posix.write(file, (__name__ + " ").encode())
finally:
    raise SystemExit("code of the current directory was run")
"""


class HostileDirectory:
    """A directory with a module for every name that the programs could import."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._marker = path.with_name("executed")
        path.mkdir()
        installed = {name for name in packages_distributions() if name.isidentifier()}
        for name in {*OURS, *CONFIGURATION, *installed, *sys.stdlib_module_names}:
            (path / f"{name}.py").write_text(LEAK.format(marker=str(self._marker)))
        # LiteLLM would read it.
        (path / ".env").write_text("GIT_EXEC_PATH=/nonexistent\nHTTPS_PROXY=http://127.0.0.1:9\n")

    def executed(self) -> str:
        """The modules whose code was run."""
        return self._marker.read_text() if self._marker.exists() else ""


@pytest.fixture
def hostile(tmp_path: Path) -> HostileDirectory:
    return HostileDirectory(tmp_path / "cloned repository")


@contextmanager
def fleet_up(root: Path, directory: HostileDirectory) -> Iterator[WholeFleet]:
    """`fleet up --demo` as installed, started in `directory`."""
    fleet = WholeFleet(root)
    root.mkdir()
    command = [str(BIN / "fleet"), "up", "--port", "0", "--flower-port", "0", "--demo"]
    with fleet.log.open("wb") as log:
        fleet.process = subprocess.Popen(
            command, cwd=directory.path, env=fleet.environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_until(
            lambda: "Dronefleet is up" in fleet.log.read_text() or directory.executed() or fleet.process_ended(),
            seconds=120,
        )
        yield fleet
    finally:
        fleet.close()


def test_no_part_of_a_fleet_and_no_drone_runs_code_of_the_directory_it_was_started_in(
    hostile: HostileDirectory, tmp_path: Path
) -> None:
    with fleet_up(tmp_path / "fleet", hostile) as fleet:
        assert hostile.executed() == ""
        drone = fleet.workstation("mine")
        with drone.log.open("wb") as log:
            command = [str(BIN / "drone"), "start"]
            drone.process = subprocess.Popen(
                command, cwd=hostile.path, env=dict(drone.environment), stdout=log, stderr=log, start_new_session=True
            )
        sent = [fleet.submit("Fix slug.sh", "--drone", name) for name in ("local-1", "mine")]
        ended = [fleet.ended(order["id"], seconds=150) for order in sent]
        assert drone.stop() == 0

    assert hostile.executed() == ""
    assert [order["status"] for order in ended] == ["succeeded"] * 2, ended[0]["reason"]


def test_a_run_without_a_control_plane_executes_nothing_of_its_directory_and_reads_no_variables_there(
    hostile: HostileDirectory, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "project")
    environment = {**clean_environment(), "HOME": str(tmp_path), "DRONE_HOME": str(tmp_path / "drone")}
    with ScriptedServer(MEND) as server:
        command = [str(BIN / "drone"), "run", "Fix it", "--repo", str(repo), "--model", MODEL, "--api-base", server.url]
        done = subprocess.run(
            command, cwd=hostile.path, env=environment, capture_output=True, text=True, timeout=170, check=False
        )
    # As in the fork server, whose main module has no file.
    code = (
        "import os, sys; from drone.model.litellm_import import litellm; litellm();"
        "sys.exit(os.environ.get('GIT_EXEC_PATH'))"
    )
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=hostile.path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, hostile.executed()) == (0, ""), done.stderr
    assert loaded.returncode == 0, loaded.stderr
