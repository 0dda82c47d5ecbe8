"""What a search of many files costs: its processor time, as a ratio to that of a plain grep over the same tree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.terminal.output import say
from tests.support.repositories import git, work_tree
from tests.support.toolboxes import called, toolbox


def seconds(act: Callable[[], object]) -> float:
    """Time on the processor, children's too, which says the same on a busy machine: the shortest of three."""
    took = []
    for _ in range(3):
        before = sum(os.times()[:4])
        act()
        took.append(sum(os.times()[:4]) - before)
    return min(took)


def make_files(directory: Path, count: int, functions: int) -> None:
    """Source files in many directories; 100 functions are 4 kB."""
    text = "".join(f"def function_{number}(x):\n    return x + {number}\n" for number in range(functions))
    for number in range(count):
        place = directory / f"d{number // 100}"
        place.mkdir(parents=True, exist_ok=number % 100 != 0)
        (place / f"f{number}.py").write_text(text)


@pytest.mark.bench
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [10_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_many_files_beside_as_many_that_git_ignores_cost_no_more_than_a_plain_grep(tmp_path: Path, count: int) -> None:
    tree = work_tree(tmp_path / "work", {".gitignore": "node_modules/\n"})
    make_files(tree / "src", count, 60)
    make_files(tree / "node_modules", count, 240)
    git(tree, "add", "-A")
    (tree / "src" / "d50" / "new.py").write_text("needle = 1\n")
    tools = toolbox(tree)
    assert called(tools, "grep", pattern="needle").output == "src/d50/new.py\n1:needle = 1"

    plain = seconds(lambda: subprocess.run(["grep", "-rnI", "needle", "."], cwd=tree, check=True, capture_output=True))
    ours = seconds(lambda: called(tools, "grep", pattern="needle"))
    say(f"\ngrep -r {plain:.2f} s of processor, ours {ours:.2f} s")
    assert ours < plain * 1.5
