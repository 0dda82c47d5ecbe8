"""What a fleet keeps on disk is for its owner alone, also in a directory that was open to others before."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def made_open(root: Path, *names: str) -> None:
    """Files and their directories as an older version left them."""
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        file.chmod(0o644)


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


@pytest.mark.usefixtures("usual_umask")
def test_a_data_directory_that_was_open_is_closed_with_all_that_an_order_leaves_in_it(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    data = tmp_path / "fleet" / "fleet home" / "data"
    made_open(data, "fleet.db", "blobs/ab/abc", "logs/serve.log", "valkey/old.aof", "drones/local-1/logs/drone.log")
    assert open_to_others(data)

    fleet = start_fleet()
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    done = fleet.ended(fleet.submit("Note it, script:note")["id"])

    assert done["status"] == "succeeded", done["reason"]
    assert "+" in done["patch"]
    # Runs share the commands' umask, in directories of their own that are closed.
    wait_until(lambda: open_outside_runs(data) == [])
    assert {mode_of(run) for run in (data / "drones" / "local-1" / "runs").iterdir()} <= {0o700, 0}
    assert stat.S_IMODE((data / "drones" / "local-1" / "workspace").stat().st_mode) == 0o700


def open_outside_runs(data: Path) -> list[str]:
    return [path for path in open_to_others(data) if "/runs/" not in path]
