"""What the tests of live streams and of commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from control_plane.cli.main import app
from tests.support.command_lines import CommandLine, Done
from tests.support.fleet import Api, PlayedRun

Fleet = Callable[..., Done]
"""`fleet`, as an admin of the server or with other variables of the environment, by keyword."""


@pytest.fixture
def run(api: Api) -> PlayedRun:
    """A run of a submitted order, on a drone that is online."""
    api.add_work()
    drone = api.add_drone()
    api.wait_for_hub()
    return drone.take(api.submit())


@pytest.fixture
def fleet(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """`fleet` in the process of the test."""
    for name in [each for each in os.environ if each.startswith("FLEET_")]:
        monkeypatch.delenv(name)
    usual = {"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token, "FLEET_HOME": str(tmp_path)}
    command = CommandLine(app, capsys, monkeypatch)

    def typed(*words: str, stdin: str = "", **variables: str) -> Done:
        for name, value in {**usual, **variables}.items():
            monkeypatch.setenv(name, value)
        return command(*words, stdin=stdin)

    return typed
