"""An order that starts after several others: their work is merged, the same on every drone, and conflicts are shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.sandbox import choose
from drone.workspace import Workspace, Workspaces, marker_check, note_for_model, note_for_users
from shared.errors import FleetFault, OrderError
from shared.work_order import Base, MergedWork, Resumed, WorkOrder
from tests.support.repositories import MakeWorkspaces, calc_project, commit_files, git, push_commit, work_order
from tests.support.sandboxes import shell

ONE, TWO = "1" * 12, "2" * 12


@pytest.fixture
def workspaces(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces) -> Workspaces:
    return workspaces_in(tmp_path / "workspace", drone_git, choose("auto", os.environ))


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_project(tmp_path / "calc.git")


def work(remote: Path, order_id: str, files: dict[str, str], onto: str = "main") -> MergedWork:
    """The work of an order on a branch of its own."""
    branch = f"fleet/{order_id}"
    git(remote, "branch", branch, onto)
    return MergedWork(order=order_id, base=Base(commit=push_commit(remote, files, branch), branch=branch))


def after(remote: Path, first: MergedWork, *others: MergedWork, order_id: str = "3" * 12) -> WorkOrder:
    order = work_order(remote, session="c" * 12, order_id=order_id, base=first.base)
    return order.model_copy(update={"merges": others})


def prepared(workspaces: Workspaces, order: WorkOrder) -> Workspace:
    return workspaces.prepare(order, lambda *_: b"", lambda: None)


def test_the_work_of_two_orders_is_one_base_and_a_result_by_itself(workspaces: Workspaces, remote: Path) -> None:
    one, two = work(remote, ONE, {"one.txt": "1\n"}), work(remote, TWO, {"two.txt": "2\n"})
    workspace = prepared(workspaces, after(remote, one, two))
    assert sorted(path.name for path in workspace.path.glob("*.txt")) == ["one.txt", "two.txt"]
    # The time is the order's: two drones that merge at different times make the same commit.
    assert git(workspace.path, "log", "-1", "--format=%P|%s|%an|%at|%ct") == (
        f"{one.base.commit} {two.base.commit}|Merge order {TWO}|Dronefleet|1767225600|1767225600"
    )
    assert TWO in note_for_users(workspace.start.merges)
    assert (note_for_model(workspace.start.merges), marker_check(workspace.start.merges)) == ("", None)
    made = workspace.deliver("fleet/three", "Three", "Dronefleet <drone@localhost>")
    assert (made.head_commit, made.base_commit) == (workspace.base_commit, one.base.commit)
    assert (b"two.txt" in made.patch, b"one.txt" in made.patch) == (True, False)
    # The order's own work comes on top of the merge.
    shell(workspace.sandbox, workspace.path, "echo 3 > three.txt")
    made = workspace.deliver("fleet/three", "Three", "Dronefleet <drone@localhost>")
    assert workspace.push("fleet/three", None, 20).pushed
    assert (b"three.txt" in made.patch, b"one.txt" in made.patch, b"two.txt" in made.patch) == (True, False, False)
    delivered = {"one.txt", "two.txt", "three.txt"} | set(git(remote, "ls-tree", "--name-only", "main").split())
    assert git(remote, "ls-tree", "--name-only", "fleet/three").split() == sorted(delivered)


def test_work_without_a_common_history_or_that_is_nowhere_is_refused(
    workspaces: Workspaces, remote: Path, tmp_path: Path
) -> None:
    one = work(remote, ONE, {"one.txt": "1\n"})
    git(tmp_path, "init", "-q", "-b", "other", "apart")
    commit = commit_files(tmp_path / "apart", {"apart.txt": "apart\n"})
    git(tmp_path / "apart", "push", "-q", str(remote), "other")
    apart = MergedWork(order=TWO, base=Base(commit=commit, branch="other"))
    with pytest.raises(OrderError) as refusal:
        prepared(workspaces, after(remote, one, apart))
    assert (refusal.value.code, TWO in refusal.value.what) == ("E-MERGE-UNRELATED", True)
    with pytest.raises(FleetFault) as fault:
        prepared(workspaces, after(remote, one, MergedWork(order=TWO, base=Base(commit="f" * 40))))
    assert (fault.value.code, "ffffffffffff" in fault.value.what) == ("E-GIT-BASE", True)


def test_conflicts_are_committed_with_markers_named_and_checked(workspaces: Workspaces, remote: Path) -> None:
    one, two = work(remote, ONE, {"calc.py": "ONE = 1\n"}), work(remote, TWO, {"calc.py": "TWO = 2\n"})
    workspace = prepared(workspaces, after(remote, one, two))
    text = (workspace.path / "calc.py").read_text()
    assert "<<<<<<< " in text and "ONE = 1" in text and "TWO = 2" in text  # noqa: PT018 - one file
    assert note_for_model(workspace.start.merges).endswith("remove the markers:\n- calc.py")
    check = marker_check(workspace.start.merges) or ""
    assert shell(workspace.sandbox, workspace.path, check).return_code != 0
    shell(workspace.sandbox, workspace.path, "printf 'ONE = 1\\nTWO = 2\\n' > calc.py")
    assert shell(workspace.sandbox, workspace.path, check).return_code == 0
    shell(workspace.sandbox, workspace.path, "rm calc.py")
    assert shell(workspace.sandbox, workspace.path, check).return_code == 0


def test_work_that_contains_the_other_is_taken_as_it_is(workspaces: Workspaces, remote: Path) -> None:
    one = work(remote, ONE, {"one.txt": "1\n"})
    two = work(remote, TWO, {"two.txt": "2\n"}, onto=f"fleet/{ONE}")
    forward = prepared(workspaces, after(remote, one, two))
    forward.close()
    assert forward.base_commit == two.base.commit
    assert prepared(workspaces, after(remote, two, one)).base_commit == two.base.commit


def test_a_run_that_continues_elsewhere_finds_the_merge_again_and_checks_it(
    tmp_path: Path, remote: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces
) -> None:
    one, two = work(remote, ONE, {"calc.py": "ONE = 1\n"}), work(remote, TWO, {"calc.py": "TWO = 2\n"})
    order = after(remote, one, two)
    sandbox = choose("auto", os.environ)
    here = prepared(workspaces_in(tmp_path / "here", drone_git, sandbox), order)
    resumed = order.model_copy(update={"resumed": Resumed(run_id="run1", seq=3, base=here.base_commit)})
    there = prepared(workspaces_in(tmp_path / "there", drone_git, sandbox), resumed)
    assert there.base_commit == here.base_commit
    assert marker_check(there.start.merges) == marker_check(here.start.merges)


def test_an_order_starts_from_the_commit_that_it_was_given(workspaces: Workspaces, remote: Path) -> None:
    old = git(remote, "rev-parse", "main")
    push_commit(remote, {"new.txt": "new\n"})
    workspace = prepared(workspaces, work_order(remote, base=Base(commit=old, given=True)))
    assert (workspace.base_commit, (workspace.path / "new.txt").exists()) == (old, False)
    workspace.close()
    with pytest.raises(OrderError) as refusal:
        prepared(workspaces, work_order(remote, base=Base(commit="f" * 40, given=True)))
    assert refusal.value.code == "E-GIT-COMMIT"


def test_a_merge_that_changes_nothing_or_has_conflicts_is_no_result(workspaces: Workspaces, remote: Path) -> None:
    one = work(remote, ONE, {"calc.py": "ONE = 1\n"})
    above = work(remote, TWO, {"two.txt": "2\n"}, onto=f"fleet/{ONE}")
    other = work(remote, "4" * 12, {"calc.py": "FOUR = 4\n"})
    for first, second in ((above, one), (one, other)):
        workspace = prepared(workspaces, after(remote, first, second))
        assert workspace.deliver("fleet/three", "Three", "Dronefleet <drone@localhost>").head_commit is None
        workspace.close()
