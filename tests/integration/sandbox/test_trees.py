"""Trees of any depth are walked, given away and removed, with few descriptors and without following a link."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drone.sandbox.account import give_tree
from drone.sandbox.trees import remove, unlock, walk
from drone.workspace.cleaning import size_of
from drone.workspace.staging import remove_special_files


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Few more files can be opened than are open: at most 20 above the highest number in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 20, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def nested(top: Path, levels: int, name: str) -> Path:
    """Directories in each other; in the last one, a file, a FIFO and a link to the top."""
    top.mkdir()
    where = os.open(top, os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=where)
        inner = os.open(name, os.O_DIRECTORY, dir_fd=where)
        os.close(where)
        where = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=where))
    os.symlink(top, "link", dir_fd=where)
    os.mkfifo("fifo", dir_fd=where)
    os.close(where)
    return top


SHAPES = {
    "flat": (0, "d"),
    "deeper than recursions and descriptors": (1100, "d"),
    "deeper than paths": (2200, "d"),
    "longest names": (40, "ü" * 127),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_of_any_depth_is_walked_given_away_measured_and_removed(tmp_path: Path, shape: str) -> None:
    levels, name = SHAPES[shape]
    (tmp_path / "beside").mkdir()
    top = nested(tmp_path / "top", levels, name)
    with few_descriptors():
        size = len(os.fsencode(name)) + 1
        assert [visited.length for visited in walk(top)] == [depth * size for depth in range(levels + 1)]
        assert size_of(top) >= 0
        assert not give_tree(top, os.geteuid())
        assert remove_special_files(top) == ["/".join((*[name] * levels, "fifo"))]
        unlock(top)
        remove(top)
    assert [path.name for path in tmp_path.iterdir()] == ["beside"]


def locked(path: Path) -> None:
    nested(path, 4, "d")
    (path / "d/d").chmod(0)
    path.chmod(0o400)


def test_what_is_removed_may_be_a_file_a_link_a_locked_tree_or_nothing(tmp_path: Path) -> None:
    outside = nested(tmp_path / "outside", 3, "d")
    kinds: dict[str, Callable[[Path], object]] = {
        "file": Path.touch,
        "fifo": os.mkfifo,
        "link": lambda path: path.symlink_to(outside),
        "dangling": lambda path: path.symlink_to("/no/where"),
        "nothing": lambda _: None,
        "below/nothing": lambda _: None,
        "link/d": lambda _: None,
        "locked": locked,
    }
    for name, make in kinds.items():
        make(tmp_path / name)
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert len(list(walk(outside))) == 4


def test_a_directory_that_is_moved_away_during_a_walk_is_left_and_the_rest_of_the_top_is_visited(
    tmp_path: Path,
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    for name in ("a", "b"):
        nested(top / name, 2, "d")
    visited = []
    for each in walk(top):
        visited.append(each.names)
        if len(each.names) == 2 and not (tmp_path / "moved").exists():
            (top / each.names[0] / "d").rename(tmp_path / "moved")
    assert sorted(visited) == [(), ("a",), ("a", "d"), ("a", "d", "d"), ("b",), ("b", "d"), ("b", "d", "d")]
