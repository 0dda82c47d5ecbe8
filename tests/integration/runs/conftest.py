"""What most tests of whole runs begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.runs import Bench, small_repository


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A run on a small repository, which a test changes before it begins."""
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))
