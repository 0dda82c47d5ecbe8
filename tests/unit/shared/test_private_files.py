"""Closing directories to other users."""

from __future__ import annotations

import stat
from pathlib import Path

from shared.terminal.private_files import make_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_files_and_directories_are_closed_and_programs_stay_programs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    inner = root / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    (inner / "program").touch()
    (root / "elses").touch()
    for path, given in ((root, 0o755), (inner, 0o755), (inner / "file", 0o644), (inner / "program", 0o755)):
        path.chmod(given)
    (root / "elses").chmod(0o644)

    assert make_private(root, [inner, root / "missing"]) == ""
    assert [mode(root), mode(inner), mode(inner / "file"), mode(inner / "program")] == [0o700, 0o700, 0o600, 0o700]
    assert mode(root / "elses") == 0o644


def test_links_are_not_followed_and_a_directory_like_tmp_keeps_its_mode(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    outside.chmod(0o644)
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(0o1777)
    (root / "ours").mkdir(mode=0o755)
    for link in (root / "link", root / "ours" / "link"):
        link.symlink_to(outside)

    assert make_private(root, [root / "link", root / "ours"]) == ""
    assert (mode(root), mode(outside), mode(root / "ours")) == (0o1777, 0o644, 0o700)


def test_what_cannot_be_changed_is_named_with_the_command_that_changes_it() -> None:
    # The kernel's own files, which even root cannot change.
    left = make_private(Path("/proc/self/missing"), [Path("/proc/self/status"), Path("/proc/self/limits")])

    assert left.startswith("other users may have access to /proc/self/status, /proc/self/limits        next: chmod -R")
