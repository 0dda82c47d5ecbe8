"""What most tests of whole runs begin with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.runs import Bench, KeptCheckpoints, small_repository


@pytest.fixture
def bench(tmp_path: Path, sandboxes_closed: None) -> Bench:
    """A run on a small repository, which a test changes before it begins."""
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


@pytest.fixture
def another(tmp_path: Path) -> Callable[[str], Bench]:
    """A function that makes a run on another drone."""

    def make(name: str) -> Bench:
        made = Bench(tmp_path / name, tmp_path / "remote.git")
        made.directory.mkdir()
        made.checkpoint_store = KeptCheckpoints()
        return made

    return make
