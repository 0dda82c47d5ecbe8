"""The repository of `fleet up --demo`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from control_plane.server.embedded import demo


def git(*words: str | Path) -> str:
    return subprocess.run(["git", *map(str, words)], capture_output=True, text=True, check=True).stdout


def test_its_test_fails_and_a_second_call_keeps_what_was_pushed(tmp_path: Path) -> None:
    remote = tmp_path / "a directory" / "slugs.git"
    remote.parent.mkdir()
    demo.create_repository(remote)
    git("clone", "--quiet", remote, tmp_path / "clone")
    failing = subprocess.run(["sh", "test.sh"], cwd=tmp_path / "clone", capture_output=True, text=True, check=False)
    assert failing.returncode == 1
    assert failing.stdout.count("FAIL") == 2
    git("-C", remote, "branch", "kept")

    demo.create_repository(remote)

    assert git("-C", remote, "branch", "--list", "kept").strip() == "kept"
    assert [path.name for path in remote.parent.iterdir()] == ["slugs.git"]


def test_the_users_git_configuration_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "gitconfig"
    broken.write_text("[commit]\n\tgpgsign = true\n[init]\n\tdefaultBranch = trunk\n[broken\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(broken))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    demo.create_repository(tmp_path / "slugs.git")

    assert (tmp_path / "slugs.git" / "HEAD").read_text() == "ref: refs/heads/main\n"
    assert not (tmp_path / "elsewhere").exists()
