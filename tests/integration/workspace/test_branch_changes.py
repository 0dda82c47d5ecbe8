"""What users did to the branch of the session's last work: taken over, asked about or told, and never thrown away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from drone.workspace import BranchChange, Delivery, Workspace, Workspaces
from shared.errors import OrderError
from shared.names import branch, new_id
from shared.work_order import Base
from tests.integration.workspace.agent import does, keep
from tests.support.repositories import commit_files, git, prepared, push_commit, work_order

ONE = new_id()
BRANCH = branch(ONE)
AUTHOR = "Dronefleet <drone@localhost>"
"""By whom the fleet recognizes its own commits."""


@pytest.fixture
def first(workspaces: Workspaces, remote: Path) -> Delivery:
    """The work of a session's first order, pushed to its branch."""
    made = delivered(workspaces, remote)
    assert made[0].push(BRANCH, None, 20).pushed
    return made[1]


def delivered(workspaces: Workspaces, remote: Path, content: str = "done") -> tuple[Workspace, Delivery]:
    """The session's first order, perhaps again."""
    workspace = prepared(workspaces, work_order(remote, session="a" * 12, order_id=ONE))
    does(workspace, f"echo {content} > done.txt")
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


def rewritten(remote: Path, tmp_path: Path) -> str:
    """The branch with other commits than those that the fleet pushed."""
    git(tmp_path, "clone", "-q", str(remote), "mine")
    git(tmp_path / "mine", "checkout", "-q", "-b", BRANCH, "origin/main")
    commit = commit_files(tmp_path / "mine", {"own.txt": "own\n"}, "Do it my way")
    git(tmp_path / "mine", "push", "-q", "--force", "origin", BRANCH)
    return commit


def changed_in(patch: bytes | None) -> set[str]:
    return set(re.findall(r"(?m)^diff --git a/(\S+)", (patch or b"").decode()))


def test_commits_on_top_are_taken_over_and_named_and_are_in_the_next_result(
    workspaces: Workspaces, remote: Path, first: Delivery
) -> None:
    untouched = next_turn(workspaces, remote, base_after(first), first)
    untouched.close()
    assert (untouched.base_commit, untouched.start.change, first.branch_patch) == (first.head_commit, None, None)
    # The project's branch moves on meanwhile, and a user commits on the work's branch.
    push_commit(remote, {"elsewhere.txt": "1"})
    push_commit(remote, {"users.txt": "1"}, BRANCH)
    tip = push_commit(remote, {"done.txt": "changed\n"}, BRANCH)
    workspace = next_turn(workspaces, remote, base_after(first), first)
    change = workspace.start.change
    assert change is not None
    assert (workspace.base_commit, change.kind, change.added, change.subjects) == (tip, "ahead", 2, ("Change",) * 2)
    assert (workspace.path / "done.txt").read_text() == "changed\n"
    does(workspace, "echo 2 > second.txt")
    taken, made = keep(workspace), workspace.deliver("fleet/two", "More", AUTHOR)
    # The patch of the whole branch is the one that a code host shows.
    whole = {"done.txt", "users.txt", "second.txt"}
    assert taken.patches is not None
    assert [changed_in(each) for each in (taken.patches.turn, taken.patches.branch)] == [{"second.txt"}, whole]
    assert [changed_in(each) for each in (made.patch, made.branch_patch)] == [{"second.txt"}, whole]
    assert workspace.push("fleet/two", None, 60).pushed
    assert git(remote, "merge-base", "fleet/two", tip) == tip
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


def test_commits_of_users_are_announced_once_and_kept_if_their_branch_is_deleted(
    workspaces: Workspaces, remote: Path, first: Delivery
) -> None:
    tip = push_commit(remote, {"users.txt": "1"}, BRANCH)
    again = next_turn(workspaces, remote, base_after(first, seen=tip), first)
    again.close()
    known = again.start.change
    assert known is not None
    assert (again.base_commit, known.for_users, known.for_model) == (tip, "", "")
    git(remote, "update-ref", "-d", f"refs/heads/{BRANCH}")
    gone = next_turn(workspaces, remote, base_after(first, seen=tip), first)
    change = gone.start.change
    assert change is not None
    assert (gone.base_commit, change.kind, change.left_at) == (tip, "deleted", tip)


def test_commits_on_work_that_the_fleet_could_not_push_are_taken_over_and_its_next_turn_is_no_rewriting(
    workspaces: Workspaces, remote: Path, tmp_path: Path
) -> None:
    workspace, made = delivered(workspaces, remote)
    git(tmp_path, "clone", "-q", str(remote), "mine")
    (tmp_path / "bundle").write_bytes(made.bundle or b"")
    git(tmp_path / "mine", "fetch", "-q", str(tmp_path / "bundle"), f"{BRANCH}:{BRANCH}")
    git(tmp_path / "mine", "checkout", "-q", BRANCH)
    tip = commit_files(tmp_path / "mine", {"own.txt": "own\n"}, "Mine")
    git(tmp_path / "mine", "push", "-q", "origin", BRANCH)
    workspace = next_turn(workspaces, remote, base_after(made, pushed=False), made)
    workspace.close()
    assert (workspace.base_commit, (workspace.path / "own.txt").exists()) == (tip, True)
    # The branch is where the fleet itself left it, and only its newest work could not be pushed.
    git(remote, "update-ref", f"refs/heads/{BRANCH}", str(made.head_commit))
    _, again = delivered(workspaces, remote, "otherwise")
    workspace = next_turn(workspaces, remote, base_after(again, pushed=False), again)
    assert (workspace.base_commit, workspace.start.change) == (again.head_commit, None)


def test_a_rewritten_branch_is_refused_until_a_user_accepts_it_and_both_sides_stay(
    workspaces: Workspaces, remote: Path, first: Delivery, tmp_path: Path
) -> None:
    theirs, asked = rewritten(remote, tmp_path), list[BranchChange]()
    with pytest.raises(OrderError) as refusal:
        next_turn(workspaces, remote, base_after(first), first)
    assert refusal.value.code == "E-BRANCH-DIVERGED"
    assert "Do it my way" in refusal.value.why
    assert str(first.head_commit) in refusal.value.next
    assert git(remote, "rev-parse", BRANCH) == theirs
    workspace = next_turn(workspaces, remote, base_after(first), first, asked)
    workspace.close()
    again = next_turn(workspaces, remote, base_after(first, seen=theirs), first)
    assert [(each.kind, each.removed, each.added) for each in asked] == [("diverged", 1, 1)]
    assert (workspace.base_commit, (workspace.path / "done.txt").exists()) == (theirs, False)
    # The turn before left nothing, and began from the branch as it is: it is not asked about twice.
    assert again.base_commit == theirs
    again.close()
    # One that was set back is refused too.
    git(remote, "update-ref", f"refs/heads/{BRANCH}", "main")
    with pytest.raises(OrderError, match="diverged"):
        next_turn(workspaces, remote, base_after(first), first)


def test_a_users_amended_commit_is_not_taken_for_the_orders_own_and_not_overwritten(
    workspaces: Workspaces, remote: Path, first: Delivery, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--branch", BRANCH, str(remote), "mine")
    (tmp_path / "mine" / "done.txt").write_text("better\n")
    git(tmp_path / "mine", "commit", "-q", "-a", "--amend", "--no-edit")
    git(tmp_path / "mine", "push", "-q", "--force", "origin", BRANCH)
    theirs = git(remote, "rev-parse", BRANCH)
    again, _ = delivered(workspaces, remote, "otherwise")
    result = again.push(BRANCH, first.head_commit, 20)
    assert "Fleet-Order" in git(remote, "log", "-1", "--format=%B", theirs)
    assert (result.pushed, git(remote, "rev-parse", BRANCH)) == (False, theirs)


def test_subjects_cannot_hide_or_overwrite_anything(workspaces: Workspaces, remote: Path, first: Delivery) -> None:
    tree, tip = git(remote, "rev-parse", f"{BRANCH}^{{tree}}"), str(first.head_commit)
    for number in range(12):
        tip = git(remote, "commit-tree", tree, "-p", tip, "-m", f"Change {number}\u202e {'x' * 200}")
    git(remote, "update-ref", f"refs/heads/{BRANCH}", tip)
    change = next_turn(workspaces, remote, base_after(first), first).start.change
    assert change is not None
    assert (change.added, len(change.subjects), max(map(len, change.subjects))) == (12, 10, 100)
    assert "\u202e" not in change.for_model
    assert change.for_model.endswith("\n- and 2 more")
