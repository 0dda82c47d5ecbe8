"""Preparing a work tree for git while a process changes it."""

from __future__ import annotations

import os
from pathlib import Path

from drone.workspace.staging import remove_special_files
from tests.support.racers import exchanging

ROUNDS = 1_000


def test_no_special_file_outside_is_removed_while_a_directory_is_exchanged_for_a_symlink(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    os.mkfifo(outside / "fifo")
    (work / "link").symlink_to(outside)
    removed: set[str] = set()

    with exchanging(work / "sub", work / "link"):
        for _ in range(ROUNDS):
            os.mkfifo(work / "own")
            removed.update(remove_special_files(work))

    assert removed == {"own"}
    assert [path.name for path in outside.iterdir()] == ["fifo"]
