"""What users did to the branch of the session's last work: taken over, asked about or told, and never thrown away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.sandbox import choose
from drone.workspace import BranchChange, Delivery, Workspace, Workspaces
from shared.errors import OrderError
from shared.names import branch, new_id
from shared.work_order import Base
from tests.support.repositories import MakeWorkspaces, calc_project, commit_files, git, push_commit, work_order
from tests.support.sandboxes import shell

ONE = new_id()
BRANCH = branch(ONE)
AUTHOR = "Dronefleet <drone@localhost>"


@pytest.fixture
def workspaces(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces) -> Workspaces:
    return workspaces_in(tmp_path / "workspace", drone_git, choose("auto", os.environ))


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_project(tmp_path / "calc.git")


@pytest.fixture
def first(workspaces: Workspaces, remote: Path) -> Delivery:
    """The work of a session's first order, pushed to its branch."""
    made = delivered(workspaces, remote)
    assert made[0].push(BRANCH, None, 20).pushed
    return made[1]


def delivered(workspaces: Workspaces, remote: Path) -> tuple[Workspace, Delivery]:
    workspace = workspaces.prepare(work_order(remote, session="a" * 12, order_id=ONE), lambda *_: b"", lambda: None)
    shell(workspace.sandbox, workspace.path, "echo done > done.txt")
    made = workspace.deliver(BRANCH, "Do it", AUTHOR)
    workspace.close()
    return workspace, made


def base_after(made: Delivery, *, pushed: bool = True, seen: str | None = None) -> Base:
    names = {"branch": BRANCH} if pushed else {"unpushed_branch": BRANCH}
    return Base(commit=made.head_commit, bundle="abc", bundle_run="run1", seen=seen, **names)


def next_turn(
    workspaces: Workspaces, remote: Path, base: Base, made: Delivery, asked: list[BranchChange] | None = None
) -> Workspace:
    """The workspace of the next order of the session; with `asked`, its question is noted and approved."""
    order = work_order(remote, session="a" * 12, base=base)
    accept = () if asked is None else (asked.append,)
    return workspaces.prepare(order, lambda *_: made.bundle or b"", lambda: None, *accept)


def rewritten(remote: Path, tmp_path: Path, onto: str = "main") -> str:
    """The branch with other commits than those that the fleet pushed."""
    git(tmp_path, "clone", "-q", str(remote), "mine")
    git(tmp_path / "mine", "checkout", "-q", "-b", BRANCH, f"origin/{onto}")
    commit = commit_files(tmp_path / "mine", {"own.txt": "own\n"}, "Do it my way")
    git(tmp_path / "mine", "push", "-q", "--force", "origin", BRANCH)
    return commit


def test_commits_on_top_are_taken_over_and_named_and_are_in_the_next_result(
    workspaces: Workspaces, remote: Path, first: Delivery
) -> None:
    untouched = next_turn(workspaces, remote, base_after(first), first)
    untouched.close()
    assert (untouched.base_commit, untouched.start.change) == (first.head_commit, None)
    push_commit(remote, {"one.txt": "1"}, BRANCH)
    tip = push_commit(remote, {"done.txt": "changed\n"}, BRANCH)
    workspace = next_turn(workspaces, remote, base_after(first), first)
    change = workspace.start.change
    assert change is not None
    assert (workspace.base_commit, change.kind, change.added, change.subjects) == (tip, "ahead", 2, ("Change",) * 2)
    assert (workspace.path / "done.txt").read_text() == "changed\n"
    shell(workspace.sandbox, workspace.path, "echo more > more.txt")
    made = workspace.deliver("fleet/two", "More", AUTHOR)
    assert workspace.push("fleet/two", None, 20).pushed
    assert git(remote, "merge-base", "fleet/two", tip) == tip
    assert b"one.txt" not in made.patch
    assert (git(remote, "rev-parse", "fleet/two"), git(remote, "rev-parse", BRANCH)) == (made.head_commit, tip)


def test_after_a_branch_was_deleted_the_work_continues_from_what_the_fleet_kept_and_says_so_unless_it_was_merged(
    workspaces: Workspaces, remote: Path, first: Delivery
) -> None:
    git(remote, "branch", "kept", BRANCH)
    git(remote, "update-ref", "-d", f"refs/heads/{BRANCH}")
    workspace = next_turn(workspaces, remote, base_after(first), first)
    workspace.close()
    change = workspace.start.change
    assert change is not None
    assert (workspace.base_commit, change.kind) == (first.head_commit, "deleted")
    assert f"{BRANCH} no longer exists" in change.for_users
    git(remote, "update-ref", "refs/heads/main", "kept")
    merged = next_turn(workspaces, remote, base_after(first), first)
    assert (merged.base_commit, merged.start.change) == (first.head_commit, None)


def test_commits_on_work_that_the_fleet_could_not_push_are_taken_over_too(
    workspaces: Workspaces, remote: Path, tmp_path: Path
) -> None:
    _, made = delivered(workspaces, remote)
    git(tmp_path, "clone", "-q", str(remote), "mine")
    (tmp_path / "bundle").write_bytes(made.bundle or b"")
    git(tmp_path / "mine", "fetch", "-q", str(tmp_path / "bundle"), f"{BRANCH}:{BRANCH}")
    git(tmp_path / "mine", "checkout", "-q", BRANCH)
    tip = commit_files(tmp_path / "mine", {"own.txt": "own\n"}, "Mine")
    untouched = next_turn(workspaces, remote, base_after(made, pushed=False), made)
    untouched.close()
    git(tmp_path / "mine", "push", "-q", "origin", BRANCH)
    workspace = next_turn(workspaces, remote, base_after(made, pushed=False), made)
    assert (untouched.base_commit, untouched.start.change) == (made.head_commit, None)
    assert (workspace.base_commit, (workspace.path / "own.txt").exists()) == (tip, True)


def test_a_rewritten_branch_is_refused_and_both_sides_stay(
    workspaces: Workspaces, remote: Path, first: Delivery, tmp_path: Path
) -> None:
    theirs = rewritten(remote, tmp_path)
    with pytest.raises(OrderError) as refusal:
        next_turn(workspaces, remote, base_after(first), first)
    assert refusal.value.code == "E-BRANCH-DIVERGED"
    assert "Do it my way" in refusal.value.why
    assert str(first.head_commit) in refusal.value.next
    assert git(remote, "rev-parse", BRANCH) == theirs
    # So is one that was set back.
    git(remote, "update-ref", f"refs/heads/{BRANCH}", "main")
    with pytest.raises(OrderError, match="diverged"):
        next_turn(workspaces, remote, base_after(first), first)


def test_a_rewritten_branch_is_continued_once_a_user_accepts_it(
    workspaces: Workspaces, remote: Path, first: Delivery, tmp_path: Path
) -> None:
    theirs, asked = rewritten(remote, tmp_path), []
    workspace = next_turn(workspaces, remote, base_after(first), first, asked)
    workspace.close()
    again = next_turn(workspaces, remote, base_after(first, seen=theirs), first)
    assert [(each.kind, each.removed, each.added) for each in asked] == [("diverged", 1, 1)]
    assert (workspace.base_commit, (workspace.path / "done.txt").exists()) == (theirs, False)
    # The turn before left nothing, and began from the branch as it is: it is not asked about twice.
    assert again.base_commit == theirs


def test_an_unpushed_turn_after_an_earlier_push_of_the_same_order_is_no_rewriting(
    workspaces: Workspaces, remote: Path, first: Delivery
) -> None:
    again = workspaces.prepare(work_order(remote, session="a" * 12, order_id=ONE), lambda *_: b"", lambda: None)
    shell(again.sandbox, again.path, "echo otherwise > done.txt")
    made = again.deliver(BRANCH, "Do it", AUTHOR)
    again.close()
    workspace = next_turn(workspaces, remote, base_after(made, pushed=False), made)
    assert (workspace.base_commit, workspace.start.change) == (made.head_commit, None)


def test_a_users_amended_commit_is_not_taken_for_the_orders_own_and_not_overwritten(
    workspaces: Workspaces, remote: Path, first: Delivery, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--branch", BRANCH, str(remote), "mine")
    (tmp_path / "mine" / "done.txt").write_text("better\n")
    git(tmp_path / "mine", "commit", "-q", "-a", "--amend", "--no-edit")
    git(tmp_path / "mine", "push", "-q", "--force", "origin", BRANCH)
    theirs = git(remote, "rev-parse", BRANCH)
    again = workspaces.prepare(work_order(remote, session="a" * 12, order_id=ONE), lambda *_: b"", lambda: None)
    shell(again.sandbox, again.path, "echo otherwise > done.txt")
    again.deliver(BRANCH, "Do it", AUTHOR)
    result = again.push(BRANCH, first.head_commit, 20)
    assert "Fleet-Order" in git(remote, "log", "-1", "--format=%B", theirs)
    assert (result.pushed, git(remote, "rev-parse", BRANCH)) == (False, theirs)


def test_subjects_cannot_hide_or_overwrite_anything(workspaces: Workspaces, remote: Path, first: Delivery) -> None:
    clone = remote.with_name("mine")
    git(remote.parent, "clone", "-q", "--branch", BRANCH, str(remote), str(clone))
    for number in range(12):
        commit_files(clone, {"n.txt": str(number)}, f"Change {number}\u202e {'x' * 200}")
    git(clone, "push", "-q", "origin", BRANCH)
    change = next_turn(workspaces, remote, base_after(first), first).start.change
    assert change is not None
    assert (change.added, len(change.subjects), max(map(len, change.subjects))) == (12, 10, 100)
    assert "\u202e" not in change.for_model
    assert change.for_model.endswith("\n- and 2 more")
