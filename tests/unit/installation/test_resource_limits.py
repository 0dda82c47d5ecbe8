"""The table `[limits]` of the owner's policy, and how `drone doctor` shows it."""

from __future__ import annotations

from pathlib import Path

from drone.installation.doctor import check_limits
from drone.installation.home import DroneHome
from drone.installation.policy import load
from drone.sandbox.resources import ResourceLimits, available
from shared.terminal.doctor import FAIL, OK, WARN

MIB = 1024 * 1024


def written(directory: Path, text: str) -> Path:
    file = directory / "policy.toml"
    file.write_text(text)
    return file


def test_sizes_are_read_with_their_units(tmp_path: Path) -> None:
    file = written(
        tmp_path, '[limits]\nmemory = "2 GB"\ncpus = 1.5\nfile_size = "3MiB"\ndisk = 5000000\nprocesses = 100'
    )

    assert load(file).limits == ResourceLimits(
        memory=2 * 10**9, cpus=1.5, file_size=3 * MIB, disk=5_000_000, processes=100
    )
    lifted = load(written(tmp_path, '[limits]\nprocesses = "none"')).limits
    assert (lifted, lifted.memory is not None) == (ResourceLimits(processes=None), True)


def test_the_doctor_says_how_limits_are_enforced(tmp_path: Path) -> None:
    policy = written(tmp_path, '[limits]\nmemory = "3 GiB"\nprocesses = 1234')

    (check,) = check_limits(DroneHome(tmp_path), policy, "bwrap", {})

    assert check.found.startswith("memory 3.0GiB, processes 1,234 for the commands of a run")
    assert check.state is OK or (check.state is WARN and "looked at" in check.found)
    assert check.found.endswith("by cgroup") == ({"memory", "processes"} <= available())
    limited, unreadable = written(tmp_path, "[limits]\ncpus = 1"), "[limits]\ncpus = 0"
    (cpus,) = check_limits(DroneHome(tmp_path), limited, "bwrap", {})
    assert (cpus.state is FAIL) == ("cpus" not in available())
    assert check_limits(DroneHome(tmp_path), written(tmp_path, unreadable), "bwrap", {}) == []
