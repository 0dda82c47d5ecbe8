"""A session's last work into a clone of one's own, with real git: nothing of a person's is ever overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from control_plane.cli.checkout import Checkout, commands, remote_of
from shared.errors import Conflict, NotFound
from tests.support.refusals import code_of
from tests.support.repositories import calc_project, git, push_commit

BRANCH = "fleet/0123456789ab"


@pytest.fixture
def remote(tmp_path: Path, owner_home: Path) -> Path:
    del owner_home
    return calc_project(tmp_path / "calc.git")


@pytest.fixture
def mine(remote: Path, tmp_path: Path) -> Path:
    """A clone from before the fleet's work."""
    git(tmp_path, "clone", "--quiet", str(remote), "mine")
    git(tmp_path / "mine", "config", "user.email", "me@example.org")
    git(tmp_path / "mine", "config", "user.name", "Me")
    return tmp_path / "mine"


def head(remote: Path, **fields: Any) -> dict[str, Any]:
    """What the control plane says of work that was just pushed."""
    git(remote, "branch", BRANCH, "main")
    commit = push_commit(remote, {"notes.txt": "noted\n"}, branch=BRANCH)
    known = {"session": "s", "order": "0123456789ab", "branch": BRANCH, "commit": commit, "pushed": True}
    return {**known, "bundle": False, "project": "demo", "git_url": f"file://{remote}", **fields}


def no_bundle() -> bytes:
    raise AssertionError("no bundle is needed")


def test_pushed_work_is_fetched_and_its_branch_checked_out_and_later_moved_forward(remote: Path, mine: Path) -> None:
    known = head(remote)
    assert "fetched from origin" in Checkout(mine, known, no_bundle).run()
    assert git(mine, "rev-parse", "--abbrev-ref", "HEAD") == BRANCH
    assert (mine / "notes.txt").read_text() == "noted\n"
    git(mine, "checkout", "--quiet", "main")
    commit = push_commit(remote, {"more.txt": "more\n"}, branch=BRANCH)
    assert BRANCH in Checkout(mine, {**known, "commit": commit}, no_bundle).run()
    assert (mine / "more.txt").exists()
    # Work that is here already needs no remote.
    git(mine, "checkout", "--quiet", "main")
    remote.rename(remote.with_name("gone.git"))
    assert "already existed" in Checkout(mine, {**known, "commit": commit}, no_bundle).run()


def test_a_file_and_commits_of_ones_own_are_never_overwritten(remote: Path, mine: Path) -> None:
    known = head(remote)
    (mine / "notes.txt").write_text("mine\n")
    assert code_of(Checkout(mine, known, no_bundle).run) == "E-CHECKOUT-CHANGES"
    assert (mine / "notes.txt").read_text() == "mine\n"
    assert git(mine, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert BRANCH not in git(mine, "branch", "--list")
    (mine / "notes.txt").unlink()
    Checkout(mine, known, no_bundle).run()
    (mine / "own.txt").write_text("own\n")
    git(mine, "add", "own.txt")
    git(mine, "commit", "--quiet", "-m", "mine")
    commit = push_commit(remote, {"more.txt": "more\n"}, branch=BRANCH)
    with pytest.raises(Conflict):
        Checkout(mine, {**known, "commit": commit}, no_bundle).run()
    assert git(mine, "log", "-1", "--format=%s") == "mine"


def test_unpushed_work_comes_from_a_bundle_that_builds_on_newer_commits_of_the_remote(
    remote: Path, mine: Path, tmp_path: Path
) -> None:
    push_commit(remote, {"later.txt": "later\n"})
    known = head(remote, pushed=False, bundle=True)
    git(remote, "bundle", "create", "-q", str(tmp_path / "b"), f"refs/heads/{BRANCH}", "^main")
    git(remote, "update-ref", "-d", f"refs/heads/{BRANCH}")
    told = Checkout(mine, known, (tmp_path / "b").read_bytes).run()
    assert "from the bundle" in told
    assert (mine / "notes.txt").exists()


def test_work_that_is_nowhere_is_told_with_the_way_to_its_patch(remote: Path, mine: Path) -> None:
    known = head(remote, commit="d" * 40)
    with pytest.raises(NotFound) as refusal:
        Checkout(mine, known, no_bundle).run()
    assert (refusal.value.code, refusal.value.next) == ("E-CHECKOUT-COMMIT", "fleet patch 0123456789ab | git apply")
    with pytest.raises(NotFound):
        Checkout(mine, {**known, "pushed": False, "bundle": True}, lambda: b"not a bundle").run()
    for place in (mine.parent, mine / "missing"):
        assert code_of(Checkout(place, known, no_bundle).run) == "E-CHECKOUT-DIRECTORY"


def test_the_remote_of_the_projects_url_goes_before_origin_and_the_url() -> None:
    url = "https://git.example/calc.git"
    expected = {
        f"up\t{url} (fetch)\norigin\thttps://else (fetch)\n": "up",
        "origin\tgit@git.example:calc.git (fetch)\n": "origin",
        "other\tssh://x (fetch)\n": url,
        "": url,
    }
    assert {listing: remote_of(listing, url) for listing in expected} == expected


def test_commands_for_people_name_branch_and_commit() -> None:
    known = {"branch": BRANCH, "commit": "c" * 40, "session": "s", "pushed": True}
    assert commands(known) == [f"git fetch origin {BRANCH}", f"git checkout -b {BRANCH} {'c' * 40}"]
    assert commands({**known, "pushed": False}) == ["fleet session checkout s --directory ."]
