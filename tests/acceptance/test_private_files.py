"""What a fleet keeps on disk is for its owner alone, also in a directory that was open to others before."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)


def open_to_others(root: Path) -> list[str]:
    """What others may read or enter below `root`, down to the workspaces of drones, whose own directory is closed."""
    found = []
    for directory, names, files in os.walk(root):
        if Path(directory).name == "workspace":
            names.clear()
            files.clear()
        paths = [Path(directory), *(Path(directory, file) for file in files)]
        found += [str(path) for path in paths if mode_of(path) & 0o077 and not path.is_symlink()]
    return found


def mode_of(path: Path) -> int:
    """Its permissions; none if it is gone: a drone forgets a run once all that it reported is stored."""
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except FileNotFoundError:
        return 0


def test_a_data_directory_that_was_open_is_closed_with_all_that_an_order_leaves_in_it(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(partial(os.umask, os.umask(0o022)))
    data = tmp_path / "fleet" / "fleet home" / "data"
    for name in ("fleet.db", "blobs/ab/abc", "logs/serve.log", "valkey/old.aof", "drones/local-1/logs/drone.log"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    assert open_to_others(data)

    fleet = start_fleet()
    fleet.add_work(model.url, calc_project(tmp_path / "calc.git").as_uri())
    done = fleet.ended(fleet.submit("Note it, script:note")["id"])

    assert (done["status"], "+" in done["patch"]) == ("succeeded", True), done["reason"]
    # Runs share the commands' umask, in directories of their own that are closed.
    wait_until(lambda: [path for path in open_to_others(data) if "/runs/" not in path] == [])
    assert {mode_of(run) for run in (data / "drones" / "local-1" / "runs").iterdir()} <= {0o700, 0}
    assert mode_of(data / "drones" / "local-1" / "workspace") == 0o700
