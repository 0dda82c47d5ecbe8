"""Preparing a work tree for git while a process changes it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from drone.workspace.staging import remove_special_files
from tests.support.racers import exchanging

SECONDS = 2.0


def test_no_special_file_outside_is_removed_while_a_directory_is_exchanged_for_a_symlink(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    os.mkfifo(outside / "fifo")
    (work / "link").symlink_to(outside)
    removed: set[str] = set()

    with exchanging(work / "sub", work / "link"):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            os.mkfifo(work / "own")
            removed.update(remove_special_files(work))

    assert removed == {"own"}
    assert [path.name for path in outside.iterdir()] == ["fifo"]
