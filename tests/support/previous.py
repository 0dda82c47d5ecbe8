"""The code of an earlier version, extracted next to this one, to run its processes against this one."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("shared", "control_plane", "drone")


def previous_commit() -> str:
    """DRONEFLEET_PREVIOUS, otherwise the newest tag below this commit. Skips if there is neither."""
    if named := os.environ.get("DRONEFLEET_PREVIOUS"):
        return named
    found = _git("describe", "--tags", "--abbrev=0", "HEAD")
    if found.returncode:
        pytest.skip("nothing was released yet: there is no tag; DRONEFLEET_PREVIOUS=COMMIT names another version")
    return found.stdout.decode().strip()


def lay_out(commit: str, directory: Path) -> dict[str, str]:
    """Extract the version's code into `directory`; return the variables with which Python runs it.

    Uses `git archive`, because a worktree would stay registered in the repository if the test is killed.
    """
    packed = _git("archive", "--format=tar", commit, *PARTS)
    assert packed.returncode == 0, packed.stderr.decode()
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(directory, filter="data")
    # PYTHONSAFEPATH keeps `python -m` from searching the working directory first.
    return {"PYTHONPATH": str(directory), "PYTHONSAFEPATH": "1"}


@pytest.fixture(scope="session")
def previous(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables that make Python run the previous version."""
    return lay_out(previous_commit(), tmp_path_factory.mktemp("previous"))


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
