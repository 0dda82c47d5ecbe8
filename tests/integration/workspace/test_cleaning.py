"""What a drone removes from its disk, and what never goes: what is in use, and what something else needs."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from drone.installation.home import DroneConfig
from drone.installation.owner_rules import KeepRules
from drone.installation.workspace_marker import claim_root
from drone.runs.cleaning import clean
from drone.runs.directory import Meta, RunDirectory
from drone.sandbox import choose
from drone.workspace import cleaning
from drone.workspace.cleaning import Cleaning
from drone.workspace.locks import FileLock, held
from tests.support.clocks import HandClock
from tests.support.repositories import MakeWorkspaces, calc_project, prepared, work_order

MIB = 1024 * 1024


class Disk:
    """The directories of a drone, made by hand, each as old as the test says."""

    def __init__(self, root: Path, clock: HandClock) -> None:
        self.runs, self.root, self.clock = root / "runs", root / "workspace", clock
        claim_root(self.root)
        who = {"drone_id": "drone0000000", "name": "oka", "machine_id": "m", "control_plane_public_key": ""}
        self.config = DroneConfig(**who, server_url="http://127.0.0.1", workspace=str(self.root))

    def age(self, days: float, *paths: Path) -> None:
        at = (self.clock.now() - timedelta(days=days)).timestamp()
        for path in paths:
            os.utime(path, (at, at))

    def mirror(self, name: str, days: float, size: int = 0) -> Path:
        path = self.root / "mirrors" / f"{name}.git"
        subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
        (path / "dronefleet-refs").touch()
        (path / "objects" / "large").write_bytes(os.urandom(size))
        path.with_suffix(".lock").touch()
        self.age(days, path.with_suffix(".lock"), path / "dronefleet-refs", path)
        return path

    def workspace(self, name: str, days: float, mirror: Path | None = None, size: int = 0, order: str = "") -> Path:
        path = self.root / "sessions" / name
        lenders = path / "git" / "objects" / "info" / "alternates"
        lenders.parent.mkdir(parents=True)
        if mirror is not None:
            lenders.write_text(f"{mirror / 'objects'}\n")
        (path / "work").mkdir()
        (path / "work" / "large").write_bytes(os.urandom(size))
        (path / "order").write_text(order)
        (path / "lock").touch()
        self.age(days, path / "lock", path / "order", path)
        return path

    def run(self, run_id: str, days: float, *, confirmed: bool, order: str = "o" * 12, drone: str = "") -> Path:
        run = RunDirectory(self.runs / run_id)
        assert run.create(Meta(order, 1, "boot", "", confirmed=confirmed, drone_id=drone))
        self.age(days, run.path)
        return run.path

    def clean(self, *, dry: bool = False, **rules: int | None) -> dict[str, int]:
        """How many of each kind go."""
        found = clean(self.runs, self.config, KeepRules(**rules), self.clock, dry_run=dry)
        return {each.kind: each.removed for each in found}


@pytest.fixture
def disk(tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> Disk:
    # However full the disk of this machine is.
    monkeypatch.setattr(cleaning, "FREE_PART", 10**12)
    return Disk(tmp_path, clock)


def test_what_was_not_used_for_long_goes_and_a_dry_run_says_so_beforehand(disk: Disk) -> None:
    mirrors = [disk.mirror(f"m{days}", days) for days in (31, 29)]
    workspaces = [disk.workspace(f"w{days}", days) for days in (31, 29)]
    runs = [disk.run(f"{days:012}", days, confirmed=True) for days in (8, 6)]
    expected = {"runs": 1, "workspaces": 1, "mirrors": 1}
    assert disk.clean(dry=True) == expected
    assert all(path.exists() for path in (*mirrors, *workspaces, *runs))
    assert disk.clean() == expected
    assert [path.exists() for path in (*mirrors, *workspaces, *runs)] == [False, True] * 3
    assert disk.clean() == dict.fromkeys(expected, 0)


def test_a_mirror_from_which_a_workspace_borrows_stays_until_the_workspace_is_gone(disk: Disk) -> None:
    mirror = disk.mirror("lent", 100)
    disk.workspace("w", 8, mirror)
    assert (disk.clean(mirror_space=MIB, dry=True)["mirrors"], disk.clean(mirror_space=MIB)["mirrors"]) == (0, 0)
    assert mirror.exists()
    expected = {"runs": 0, "workspaces": 1, "mirrors": 1}
    assert (disk.clean(workspace_days=8, dry=True), disk.clean(workspace_days=8)) == (expected, expected)


def test_what_a_run_uses_what_has_no_limit_and_what_is_not_ours_stays(disk: Disk) -> None:
    mirror, workspace = disk.mirror("busy", 1000), disk.workspace("busy", 1000)
    disk.run("1" * 12, 1000, confirmed=True)
    nothing = {"runs": 0, "workspaces": 0, "mirrors": 0}
    assert disk.clean(**dict.fromkeys(("run_days", "workspace_days", "mirror_days"))) == nothing
    with (
        held(mirror.with_suffix(".lock"), seconds=60, check=lambda: None),
        held(workspace / "lock", seconds=60, check=lambda: None),
    ):
        used = {"runs": 1, "workspaces": 0, "mirrors": 0}
        assert (disk.clean(dry=True), disk.clean()) == (used, used)
    assert (mirror.exists(), workspace.exists()) == (True, True)
    marker = disk.root / ".dronefleet-workspace"
    whose = marker.read_text()
    marker.unlink()
    assert disk.clean() == nothing
    marker.write_text(whose)
    assert disk.clean() == {"runs": 0, "workspaces": 1, "mirrors": 1}


def test_a_mirror_that_is_lent_while_it_is_to_be_removed_stays_and_what_a_killed_removal_left_goes(disk: Disk) -> None:
    mirror = disk.mirror("m", 100)
    found = Cleaning(disk.root, KeepRules(), disk.clock.now())
    assert [each.path for each in found.old_mirrors] == [mirror]
    workspace = disk.workspace("new", 0, mirror)
    assert found.remove() == ([], [])
    assert mirror.exists()
    mirror.rename(mirror.with_name(".removing-m.git"))
    assert disk.clean() == {"runs": 0, "workspaces": 0, "mirrors": 0}
    assert (list((disk.root / "mirrors").glob("*.git")), workspace.exists()) == ([], True)


def test_what_is_used_while_it_is_to_be_removed_stays(disk: Disk) -> None:
    mirror, workspace = disk.mirror("m", 100), disk.workspace("w", 100)
    found = Cleaning(disk.root, KeepRules(), disk.clock.now())
    assert [each.path for each in (*found.old_workspaces, *found.old_mirrors)] == [workspace, mirror]
    disk.age(0, workspace / "lock", mirror.with_suffix(".lock"))
    assert (found.remove(), workspace.exists(), mirror.exists()) == (([], []), True, True)


def test_a_run_that_is_not_confirmed_stays_with_the_workspace_of_its_order_if_it_is_this_drones(disk: Disk) -> None:
    drones = {"a": "", "b": disk.config.drone_id, "c": "another00000"}  # the first one as an older release left it
    runs = [disk.run(order * 12, 300, confirmed=False, order=order * 12, drone=drones[order]) for order in drones]
    workspaces = [disk.workspace(order, 100, order=order * 12) for order in (*drones, "d")]
    assert disk.clean() == {"runs": 1, "workspaces": 2, "mirrors": 0}
    assert [path.exists() for path in (*runs, *workspaces)] == [True, True, False, True, True, False, False]


def test_above_the_limit_the_least_recently_used_go_first_and_on_a_full_disk_all_that_are_not_young(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrors = [disk.mirror(f"m{days}", days, MIB) for days in (4, 3, 2, 0.5)]
    workspaces = [disk.workspace(f"w{days}", days, size=MIB) for days in (10, 9, 8)]
    rules = {"mirror_space": 3 * MIB, "workspace_space": 2 * MIB + MIB // 2}
    expected = {"runs": 0, "workspaces": 1, "mirrors": 2}
    waiting = FileLock(workspaces[0] / "lock")
    assert (disk.clean(dry=True, **rules), disk.clean(**rules)) == (expected, expected)
    assert [path.exists() for path in mirrors] == [False, False, True, True]
    assert [path.exists() for path in workspaces] == [False, True, True]
    # Who waited for the lock of a removed workspace gets a new one.
    waiting.take(seconds=60, check=lambda: None)
    assert (workspaces[0] / "lock").exists()
    waiting.release()

    lent = disk.mirror("lent", 100)
    disk.workspace("w6", 6, lent)
    monkeypatch.setattr(cleaning, "FREE_PART", 1)
    disk.clean()
    assert [path.exists() for path in (*mirrors, *workspaces[1:], lent)] == [False] * 3 + [True, False, False, True]


def test_an_order_marks_its_workspace_and_its_mirror_as_used(
    disk: Disk, tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces
) -> None:
    workspaces = workspaces_in(disk.root, drone_git, choose("none", os.environ))
    order = work_order(calc_project(tmp_path / "calc.git"))
    prepared(workspaces, order).close()
    found = [*Cleaning(disk.root, KeepRules(), disk.clock.now()).workspaces]
    mirror = next((disk.root / "mirrors").glob("*.git"))
    used = [found[0].path / "lock", mirror.with_suffix(".lock")]
    disk.age(300, *used)
    prepared(workspaces, order).close()
    assert all(path.stat().st_mtime > disk.clock.now().timestamp() - 86400 * 200 for path in used)
    assert str(mirror) in cleaning.borrowed(each.path for each in found)
