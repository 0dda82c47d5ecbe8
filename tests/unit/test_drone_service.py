"""The systemd unit of a drone, as systemd reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.home import DroneHome
from drone.service import unit_text


def test_the_unit_starts_this_drone_and_not_the_one_of_somebody_else() -> None:
    lines = unit_text(DroneHome(Path("/home/me/my drone"))).splitlines()

    assert 'Environment="DRONE_HOME=/home/me/my drone"' in lines
    assert next(line for line in lines if line.startswith("ExecStart=")).endswith('" -m drone.cli.main start')


def test_what_systemd_would_expand_is_escaped() -> None:
    lines = unit_text(DroneHome(Path('/d/100%"x\\y'))).splitlines()

    assert 'Environment="DRONE_HOME=/d/100%%\\"x\\\\y"' in lines


def test_the_owners_policy_file_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRONE_POLICY", "/etc/policy.toml")

    assert 'Environment="DRONE_POLICY=/etc/policy.toml"' in unit_text(DroneHome(Path("/d"))).splitlines()
