"""HEAD read as text: the same as git says, or nothing, and never anything outside the workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.workspace.plain_head import plain_head
from tests.support.repositories import git


@pytest.fixture
def work(tmp_path: Path, remote: Path) -> Path:
    git(tmp_path, "clone", "--quiet", str(remote), "work")
    return tmp_path / "work"


def says_git(work: Path) -> str:
    return git(work, "rev-parse", "HEAD").strip()


def test_it_is_what_git_says_on_a_branch_and_without_one(work: Path, tmp_path: Path) -> None:
    git(work, "checkout", "--quiet", "-b", "a/b-c.d")
    git(work, "commit", "--quiet", "--allow-empty", "-m", "more")
    assert plain_head(work) == says_git(work)
    git(work, "checkout", "--quiet", "--detach", "HEAD~1")
    assert plain_head(work) == says_git(work)
    # What only git could tell is left to git.
    git(tmp_path, "clone", "--quiet", "--separate-git-dir", str(tmp_path / "apart"), str(work), "linked")
    assert plain_head(tmp_path / "linked") is plain_head(tmp_path / "nothing here") is None


def test_it_is_what_git_says_where_refs_are_packed_as_in_a_new_workspace(work: Path) -> None:
    git(work, "branch", "main-2")
    git(work, "commit", "--quiet", "--allow-empty", "-m", "of main alone")
    git(work, "pack-refs", "--all")
    assert not (work / ".git" / "refs" / "heads" / "main").exists()
    assert plain_head(work) == says_git(work)
    git(work, "commit", "--quiet", "--allow-empty", "-m", "more")  # its own file counts, and not the older packed line
    assert plain_head(work) == says_git(work)
    git(work, "checkout", "--quiet", "--orphan", "none-yet")
    assert plain_head(work) is None


def test_nonsense_is_nothing_no_link_is_followed_and_no_pipe_is_waited_for(work: Path) -> None:
    outside = work.parent / "outside"
    git(work, "pack-refs", "--all")
    head, packed = work / ".git" / "HEAD", work / ".git" / "packed-refs"
    for content in (b"", b"\xff" * 100, b"abc refs/heads/main\n", b"0" * (2 << 20)):
        packed.write_bytes(content)
        assert plain_head(work) is None
    outside.write_text(f"{'a' * 40} refs/heads/main\n")
    packed.unlink()
    packed.symlink_to(outside)
    assert plain_head(work) is None

    outside.write_text(f"{'a' * 40}\n")
    names = (b"refs/heads/../../../outside", b"refs/heads//main", b"/etc/passwd", b"refs/heads/" + b"x" * 5_000)
    for content in (*(b"ref: " + name + b"\n" for name in names), b"\xff\xfe", b"", b"a" * 40):
        head.write_bytes(content)
        assert plain_head(work) is None
    for make in (lambda: head.symlink_to(outside), lambda: os.mkfifo(head), head.mkdir):
        head.unlink()
        make()
        assert plain_head(work) is None
    (work / ".git").rename(work / "moved")
    (work / ".git").symlink_to(work / "moved")
    assert plain_head(work) is None
