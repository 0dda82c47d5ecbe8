"""An order that starts after several others: their work is merged, the same on every drone, and conflicts are shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.workspace import Workspaces, marker_check, note_for_model, note_for_users
from shared.errors import FleetError
from shared.work_order import Base, MergedWork, Resumed, WorkOrder
from tests.integration.workspace.agent import AUTHOR, does, keep
from tests.support.repositories import commit_files, git, prepared, push_commit, work_order
from tests.support.sandboxes import shell

ONE, TWO = "1" * 12, "2" * 12


def work(remote: Path, order_id: str, files: dict[str, str], onto: str = "main") -> MergedWork:
    """The work of an order on a branch of its own."""
    branch = f"fleet/{order_id}"
    git(remote, "branch", branch, onto)
    return MergedWork(order=order_id, base=Base(commit=push_commit(remote, files, branch), branch=branch))


def after(remote: Path, first: MergedWork, *others: MergedWork, order_id: str = "3" * 12) -> WorkOrder:
    order = work_order(remote, session="c" * 12, order_id=order_id, base=first.base)
    return order.model_copy(update={"merges": others})


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
    made = workspace.deliver("fleet/three", "Three", AUTHOR)
    assert (made.head_commit, made.base_commit) == (workspace.base_commit, one.base.commit)
    assert (b"two.txt" in made.patch, b"one.txt" in made.patch) == (True, False)
    # The order's own work comes on top of the merge.
    does(workspace, "echo 3 > three.txt")
    made = workspace.deliver("fleet/three", "Three", AUTHOR)
    assert workspace.push("fleet/three", None, 20).pushed
    assert (b"three.txt" in made.patch, b"one.txt" in made.patch, b"two.txt" in made.patch) == (True, False, False)
    delivered = {"one.txt", "two.txt", "three.txt"} | set(git(remote, "ls-tree", "--name-only", "main").split())
    assert git(remote, "ls-tree", "--name-only", "fleet/three").split() == sorted(delivered)


def test_work_without_a_common_history_or_that_is_nowhere_is_refused_but_any_commit_may_be_given(
    workspaces: Workspaces, remote: Path, tmp_path: Path
) -> None:
    old, one = git(remote, "rev-parse", "main"), work(remote, ONE, {"one.txt": "1\n"})
    push_commit(remote, {"new.txt": "new\n"})
    git(tmp_path, "init", "-q", "-b", "other", "apart")
    commit = commit_files(tmp_path / "apart", {"apart.txt": "apart\n"})
    git(tmp_path / "apart", "push", "-q", str(remote), "other")
    apart, nowhere = Base(commit=commit, branch="other"), Base(commit="f" * 40)
    refused: dict[str, WorkOrder] = {
        "E-MERGE-UNRELATED": after(remote, one, MergedWork(order=TWO, base=apart)),
        "E-GIT-BASE": after(remote, one, MergedWork(order=TWO, base=nowhere)),
        "E-GIT-COMMIT": work_order(remote, base=Base(commit="f" * 40, given=True)),
    }
    for code, order in refused.items():
        with pytest.raises(FleetError) as refusal:
            prepared(workspaces, order)
        assert refusal.value.code == code
    workspace = prepared(workspaces, work_order(remote, base=Base(commit=old, given=True)))
    assert (workspace.base_commit, (workspace.path / "new.txt").exists()) == (old, False)


def test_conflicts_are_committed_with_markers_named_and_checked_also_where_a_run_continues_elsewhere(
    workspaces: Workspaces, elsewhere: Workspaces, remote: Path
) -> None:
    one, two = work(remote, ONE, {"one.txt": "1\n"}), work(remote, TWO, {"calc.py": "TWO = 2\n"})
    # The conflict is with a user's commit on the first branch.
    push_commit(remote, {"calc.py": "ONE = 1\n"}, f"fleet/{ONE}")
    order = after(remote, one, two)
    workspace = prepared(workspaces, order)
    text = (workspace.path / "calc.py").read_text()
    assert ("<<<<<<< " in text, "ONE = 1" in text, "TWO = 2" in text) == (True, True, True)
    assert note_for_model(workspace.start.merges).endswith("remove the markers:\n- calc.py")
    check = marker_check(workspace.start.merges) or ""
    for line, resolved in (("true", False), ("printf 'ONE = 1\\n' > calc.py", True), ("rm calc.py", True)):
        does(workspace, line)
        assert (line, shell(workspace.sandbox, workspace.path, check).return_code == 0) == (line, resolved)
    resumed = order.model_copy(update={"resumed": Resumed(run_id="run1", seq=3, base=workspace.base_commit)})
    there = prepared(elsewhere, resumed)
    assert (there.base_commit, marker_check(there.start.merges)) == (workspace.base_commit, check)


def test_markers_are_found_beside_a_deleted_file_and_in_one_whose_name_is_not_unicode(
    workspaces: Workspaces, remote: Path
) -> None:
    odd = os.fsdecode(b"caf\xe9's.py")
    one, two = (work(remote, order, {"calc.py": f"{order}\n", odd: f"{order}\n"}) for order in (ONE, TWO))
    workspace = prepared(workspaces, after(remote, one, two))
    merges = workspace.start.merges
    check = marker_check(merges) or ""
    for line, resolved in (("rm calc.py", False), ("echo 1 > caf*.py", True)):
        does(workspace, line)
        assert (line, shell(workspace.sandbox, workspace.path, check).return_code == 0) == (line, resolved)
    assert "caf\ufffd's.py, calc.py" in note_for_users(merges)
    assert all(text.encode() for text in (check, note_for_model(merges)))


def test_a_run_that_continues_elsewhere_takes_the_merged_base_from_the_checkpoint(
    workspaces: Workspaces, elsewhere: Workspaces, remote: Path
) -> None:
    one, two = work(remote, ONE, {"one.txt": "1\n"}), work(remote, TWO, {"two.txt": "2\n"})
    tip = push_commit(remote, {"users.txt": "1\n"}, f"fleet/{ONE}")
    order = after(remote, one, two)
    workspace = prepared(workspaces, order)
    does(workspace, "echo 3 > three.txt")
    kept = keep(workspace)
    # Repeated now, the merge would be another one.
    push_commit(remote, {"users.txt": "2\n"}, f"fleet/{ONE}")
    known = {"base": workspace.base_commit, "commit": kept.commit, "bundle": "b" * 64, "bundle_run": "run1"}
    resumed = Resumed.model_validate({"run_id": "run1", "seq": 3, **known})
    there = elsewhere.prepare(
        order.model_copy(update={"resumed": resumed}), lambda *_: kept.bundle or b"", lambda: None
    )
    assert (there.base_commit, there.start.merges) == (workspace.base_commit, workspace.start.merges)
    assert (there.start.merged_into, workspace.start.merged_into) == (tip, tip)


def test_work_that_contains_the_other_is_taken_as_it_is_and_neither_that_nor_a_conflict_is_a_result(
    workspaces: Workspaces, remote: Path
) -> None:
    one = work(remote, ONE, {"calc.py": "ONE = 1\n"})
    above = work(remote, TWO, {"two.txt": "2\n"}, onto=f"fleet/{ONE}")
    other = work(remote, "4" * 12, {"calc.py": "FOUR = 4\n"})
    for first, second, base in ((one, above, above), (above, one, above), (one, other, None)):
        workspace = prepared(workspaces, after(remote, first, second))
        workspace.close()
        assert base is None or workspace.base_commit == base.base.commit
        # The work above another is a result of its own for the first of them.
        is_result = first is one and second is above
        assert (workspace.deliver("fleet/three", "Three", AUTHOR).head_commit is not None) == is_result
