"""The table `[limits]` of the owner's policy, and how `drone doctor` shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.installation.doctor import check_limits
from drone.installation.home import DroneHome
from drone.installation.policy import load
from drone.sandbox.resources import ResourceLimits, available
from shared.errors import Precondition
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


def test_what_is_not_named_keeps_its_default_and_none_lifts_a_limit(tmp_path: Path) -> None:
    limits = load(written(tmp_path, '[limits]\nprocesses = "none"')).limits

    assert limits == ResourceLimits(processes=None)
    assert limits.memory is not None
    assert limits.memory > MIB


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('limits = "none"', "[limits] may contain only memory, processes, cpus, file_size, disk"),
        ("[limits]\nram = 1", "[limits] may contain only memory, processes, cpus, file_size, disk"),
        ('[limits]\nmemory = "much"', "limits.memory is invalid: expected a size"),
        ("[limits]\nmemory = -1", "limits.memory is invalid: expected a size"),
        ('[limits]\ndisk = "12"', "limits.disk is invalid: expected a size"),
        ("[limits]\nprocesses = 3", "limits.processes is invalid: expected a number of at least 16"),
        ("[limits]\nprocesses = true", "limits.processes is invalid: expected a number of at least 16"),
        ("[limits]\ncpus = 0", "limits.cpus is invalid: expected a number of cores"),
    ],
)
def test_a_limit_that_cannot_be_understood_stops_the_drone(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(Precondition) as raised:
        load(written(tmp_path, text))

    assert raised.value.why.startswith(why)


def test_the_doctor_says_how_limits_are_enforced(tmp_path: Path) -> None:
    policy = written(tmp_path, '[limits]\nmemory = "3 GiB"\nprocesses = 1234')

    (check,) = check_limits(DroneHome(tmp_path), policy, "bwrap", {})

    assert check.found.startswith("memory 3.0GiB, processes 1,234 for the commands of a run")
    assert check.state is OK or (check.state is WARN and "looked at" in check.found)
    assert check.found.endswith("by cgroup") == ({"memory", "processes"} <= available())


def test_the_doctor_fails_where_processor_time_cannot_be_limited(tmp_path: Path) -> None:
    checks = check_limits(DroneHome(tmp_path), written(tmp_path, "[limits]\ncpus = 1"), "bwrap", {})

    assert [check.state is FAIL for check in checks] == ["cpus" not in available()]


def test_the_doctor_says_nothing_about_a_policy_that_cannot_be_read(tmp_path: Path) -> None:
    assert check_limits(DroneHome(tmp_path), written(tmp_path, "[limits]\ncpus = 0"), "bwrap", {}) == []
