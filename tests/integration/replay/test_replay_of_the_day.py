"""Runs of the mini-swe-agent of the day: installed in an environment of its own, recorded here and now, and played."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drone.replay import ReplayWishes, replay
from drone.replay.trajectory_file import recording_of
from tests.support.mini_recording import FORMS, make_project, record

INSTALL_SECONDS = 600


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with mini-swe-agent in it; skipped where the package index cannot be reached."""
    place = tmp_path_factory.mktemp("mini") / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    install = [place / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "mini-swe-agent", "mcp"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if done.returncode != 0:
        pytest.skip(f"mini-swe-agent cannot be installed here: {done.stderr.strip()[-300:]}")
    return place


@pytest.mark.long
@pytest.mark.timeout(INSTALL_SECONDS + 300)
@pytest.mark.parametrize("form", FORMS)
def test_a_run_recorded_now_replays_with_the_same_observations(mini: Path, tmp_path: Path, form: str) -> None:
    document = record(form, mini, tmp_path / "project", tmp_path / "scratch")

    result = replay(recording_of(document), ReplayWishes(str(make_project(tmp_path / "again")), "none"), os.environ)

    assert (result.difference, result.same, result.exit_status) == (None, True, "submitted")
    assert result.compared >= 18
