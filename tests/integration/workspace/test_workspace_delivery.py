"""What the agent did comes out as one branch, a patch that applies and a bundle, whatever it did to its workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.workspace import Delivery, PushResult, Workspace, Workspaces
from drone.workspace.encodings import add_unencoded
from shared.work_order import Base
from tests.integration.workspace.agent import AUTHOR, BRANCH, changed_files, deliver, ending, keep, work
from tests.support.repositories import commit_files, empty_remote, git, prepared, push_commit, work_order


@pytest.fixture
def workspace(workspaces: Workspaces, remote: Path) -> Workspace:
    return prepared(workspaces, work_order(remote, order_id="0rder0rder00"))


def applied(remote: Path, delivery: Delivery, base: str | None, tmp_path: Path) -> Path:
    """A clone of the remote at the base with the patch applied by `git apply`."""
    clone = tmp_path / "applied"
    git(tmp_path, "clone", "-q", str(remote), str(clone))
    git(clone, "read-tree", "-u", "--reset", base or git(clone, "hash-object", "-w", "-t", "tree", os.devnull))
    git(clone, "apply", "--index", "-", stdin=delivery.patch)
    return clone


def subjects(workspace: Workspace, delivery: Delivery) -> list[str]:
    """The subjects of all commits on top of the base."""
    log = git(workspace.session.git_dir, "log", "--format=%s", f"{workspace.base_commit}..{delivery.head_commit}")
    return log.splitlines()


def test_the_agents_own_commits_are_delivered_and_the_rest_comes_on_top(workspace: Workspace) -> None:
    line = "git checkout -q -b mine; echo 1 > one; git add one; git commit -qm 'My own commit'"
    assert subjects(workspace, work(workspace, line)) == ["My own commit"]
    assert subjects(workspace, work(workspace, "echo 2 > two")) == ["Fix it", "My own commit"]


def test_changes_become_one_commit_whose_patch_applies_to_the_base_and_whose_bundle_brings_the_branch(
    workspace: Workspace, remote: Path, tmp_path: Path
) -> None:
    line = (
        "printf 'a\\0b' > image.bin; printf 'a\\r\\nb\\r\\n' > windows.txt; printf 'no newline' > end.txt; "
        "ln -s calc.py link; chmod +x test_calc.py; mkdir -p 'a b/ü'; echo x > 'a b/ü/\"q\".txt'; "
        "mv README.md MOVED.md; : > empty; rm calc.py; mkdir calc.py; echo y > calc.py/inside; "
        "printf x > $(printf 'caf\\351'); printf y > $'with\\nnewline'; ln -s /etc/hostname outside; ln -s / root"
    )

    delivery = work(workspace, line)

    assert subjects(workspace, delivery) == ["Fix it"]
    shown = git(workspace.session.git_dir, "log", "-1", "--format=%an <%ae>%n%B", delivery.head_commit or "")
    assert shown == f"{AUTHOR}\nFix it\n\nFleet-Order: 0rder0rder00"
    clone = applied(remote, delivery, workspace.base_commit, tmp_path)
    head = delivery.head_commit or ""
    assert git(clone, "write-tree") == git(workspace.session.git_dir, "rev-parse", f"{head}^{{tree}}")
    # Links that lead out are delivered as links.
    modes = git(workspace.session.git_dir, "ls-tree", "-r", head, "outside", "root")
    assert [mode.split()[0] for mode in modes.splitlines()] == ["120000"] * 2
    (tmp_path / "work.bundle").write_bytes(delivery.bundle or b"")
    git(remote, "fetch", "-q", str(tmp_path / "work.bundle"), f"{BRANCH}:taken")
    assert git(remote, "rev-parse", "taken") == head
    again = deliver(workspace)
    assert (again.patch, again.files_changed) == (delivery.patch, delivery.files_changed)


def test_what_cannot_be_delivered_is_left_out_by_name_and_nothing_hangs(workspace: Workspace) -> None:
    line = (
        "git init -q inner; echo 1 > inner/a; mkfifo fifo; truncate -s 101000000 huge.bin; echo new > new.txt; "
        "rm calc.py; mkfifo calc.py; rm .gitignore; mkfifo .gitignore; mkdir d; mkfifo d/.gitignore; echo 1 > d/file"
    )

    delivery = work(workspace, line)

    assert delivery.files_changed == 2
    left_out = {text.partition(":")[0] for text in delivery.left_out}
    assert {"calc.py", "fifo", "huge.bin", "inner/"} <= left_out
    assert b"huge" not in delivery.patch
    assert work(workspace, "rm -rf ./* .git .gitignore").files_changed == 4


def test_nothing_changed_is_no_delivery_and_lines_are_counted_but_in_binary_files(workspace: Workspace) -> None:
    for line in ("true", "touch calc.py", "echo x > x.cache", "git commit -q --allow-empty -m nothing"):
        assert work(workspace, line) == Delivery(None, workspace.base_commit)
    made = work(
        workspace, "sed -i 's/a - b/a + b/' calc.py; echo new > new.txt; rm README.md; printf 'a\\0b' > data.bin"
    )
    # README.md had three lines.
    assert (made.files_changed, made.lines_added, made.lines_removed) == (4, 2, 4)


def test_work_whose_head_the_remote_has_already_needs_no_bundle(
    workspaces: Workspaces, elsewhere: Workspaces, remote: Path
) -> None:
    git(remote, "branch", "fleet/one", "main")
    one = push_commit(remote, {"one.txt": "1"}, "fleet/one")
    git(remote, "update-ref", "refs/heads/main", one)
    tip = push_commit(remote, {"two.txt": "2"})
    workspace = prepared(workspaces, work_order(remote, base=Base(commit=one, branch="fleet/one")))

    made = work(workspace, "git merge -q --ff-only origin/main")

    assert (workspace.base_commit, made.head_commit, made.bundle, made.files_changed) == (one, tip, None, 1)
    assert workspace.push(BRANCH, None, 60).pushed
    there = prepared(elsewhere, work_order(remote, base=Base(commit=tip, unpushed_branch=BRANCH)))
    assert there.base_commit == tip


def test_work_in_an_empty_repository_becomes_its_first_commit(workspaces: Workspaces, tmp_path: Path) -> None:
    remote = empty_remote(tmp_path / "empty.git")
    workspace = prepared(workspaces, work_order(remote))

    delivery = work(workspace, "echo first > first.txt")

    clone = applied(remote, delivery, None, tmp_path)
    assert (clone / "first.txt").read_text() == "first\n"
    assert workspace.push("fleet/x", None, 60).pushed
    assert git(remote, "rev-parse", "fleet/x") == delivery.head_commit
    committed = work(workspace, "git add first.txt; git commit -qm 'My first'")
    assert git(workspace.session.git_dir, "log", "--format=%s", committed.head_commit or "") == "My first"


def test_a_run_that_is_asked_to_end_delivers_its_work(workspaces: Workspaces, tmp_path: Path) -> None:
    other = tmp_path / "sha256"
    git(tmp_path, "init", "-q", "--object-format=sha256", str(other))
    commit_files(other, {"a.txt": "a\n"})
    for remote in (empty_remote(tmp_path / "empty.git"), other):
        workspace = ending(workspaces, work_order(remote))
        made = work(workspace, "echo first > first.txt")
        assert (made.files_changed, keep(workspace).changed) == (1, True), remote


@pytest.mark.parametrize(
    "damage",
    [
        "rm -rf .git; ln -s /nowhere .git",
        "git init -q other && mv other/.git/HEAD .git/HEAD && rm -rf other; git checkout -q --orphan alone",
        "find .git -name index -delete; rm -rf .git/objects",
    ],
)
def test_whatever_became_of_its_git_the_agents_files_are_delivered(workspace: Workspace, damage: str) -> None:
    delivery = work(workspace, f"echo new > new.txt; {damage}")

    assert (subjects(workspace, delivery), delivery.files_changed) == (["Fix it"], 1)


def test_history_that_does_not_go_on_from_the_base_comes_as_one_commit(workspaces: Workspaces, remote: Path) -> None:
    push_commit(remote, {"second.txt": "2"})
    workspace = prepared(workspaces, work_order(remote))
    back = work(workspace, "git reset -q --hard HEAD~1")
    assert subjects(workspace, back) == ["Fix it"]
    assert b"deleted file mode" in back.patch

    anew = work(workspace, "git checkout -q --orphan alone; echo new > new.txt; git add .; git commit -qm 'All new'")
    assert subjects(workspace, anew) == ["Fix it"]
    assert "do not descend from the base" in anew.notes[0]


def test_a_file_that_the_agent_committed_although_git_ignores_it_is_delivered_also_after_an_amend(
    workspace: Workspace,
) -> None:
    keep(workspace)
    ignored = "mkdir dist; touch dist/mine.cache gone.cache other.cache; git add -f dist gone.cache"
    made = work(workspace, f"{ignored}; git commit -q --amend -m All; rm gone.cache")
    assert changed_files(workspace, made) == {"dist/mine.cache"}
    cache = "mkdir node_modules; touch node_modules/x.js; git add -f node_modules"
    made = work(workspace, f"{cache}; git commit -q --amend -m All")
    assert changed_files(workspace, made) == {"dist/mine.cache", "node_modules/x.js"}
    keep(workspace)
    assert deliver(workspace).patch == made.patch


def test_a_push_goes_over_what_is_known_and_over_nothing_else_and_ends_when_its_time_is_up(
    workspace: Workspace, remote: Path
) -> None:
    first = work(workspace, "echo 1 > new.txt")
    assert workspace.push("fleet/a", None, 60).pushed
    theirs = push_commit(remote, {"theirs.txt": "1"}, branch="fleet/a")
    second = work(workspace, "echo 2 > new.txt")

    blind = workspace.push("fleet/a", first.head_commit, 60)
    known = workspace.push("fleet/a", theirs, 60)

    assert (blind.pushed, known.pushed) == (False, True)
    assert "was changed on the remote meanwhile" in (blind.error or "")
    assert git(remote, "rev-parse", "fleet/a") == second.head_commit
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexec sleep 600\n")
    hook.chmod(0o755)
    late = workspace.push("fleet/b", None, 1)
    assert (late.pushed, "exceeded its time limit of 1 s" in (late.error or "")) == (False, True)


def test_a_branch_that_a_user_deleted_is_pushed_again(workspace: Workspace, remote: Path) -> None:
    first = work(workspace, "echo 1 > new.txt")
    assert workspace.push("fleet/a", None, 60).pushed
    git(remote, "update-ref", "-d", "refs/heads/fleet/a")
    second = work(workspace, "echo 2 > new.txt")

    result = workspace.push("fleet/a", first.head_commit, 60)

    assert (result, git(remote, "rev-parse", "fleet/a")) == (PushResult(True), second.head_commit)


def test_a_file_is_delivered_in_its_declared_encoding_or_else_as_it_is(workspace: Workspace) -> None:
    declared: list[tuple[str, bytes, bytes | None]] = [
        ("working-tree-encoding=UTF-16", "grün\n".encode("utf-16"), "grün\n".encode()),
        ("working-tree-encoding=UTF-16", b"no byte order mark\n", None),
        ("working-tree-encoding=UTF-16LE-BOM", b"odd", None),
        ("working-tree-encoding=SHIFT-JIS", b"\xff\xfe not Shift-JIS\n", None),
        ("working-tree-encoding=US-ASCII", "grün\n".encode(), None),
        ("working-tree-encoding=no-such-encoding", b"unknown\n", None),
        ("working-tree-encoding", b"no name\n", None),
        ("-working-tree-encoding", b"no name either\n", None),
    ]
    for number, (attribute, content, _) in enumerate(declared):
        (workspace.path / str(number)).mkdir()
        (workspace.path / str(number) / ".gitattributes").write_text(f"*.txt {attribute}\n")
        (workspace.path / str(number) / "tool.txt").write_bytes(content)
        (workspace.path / str(number) / "tool.txt").chmod(0o755)

    head = work(workspace, "true").head_commit or ""

    blobs = workspace.session.git
    delivered = [blobs.raw("cat-file", "blob", f"{head}:{number}/tool.txt") for number in range(len(declared))]
    assert delivered == [converted or content for _, content, converted in declared]
    assert git(workspace.session.git_dir, "ls-tree", head, "1/tool.txt").startswith("100755 ")


def test_a_link_in_place_of_a_badly_encoded_file_does_not_bring_the_owners_file(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("owner's")
    (workspace.path / ".gitattributes").write_text("*.txt working-tree-encoding=UTF-16\n")
    (workspace.path / "bad.txt").write_text("no byte order mark")
    (workspace.path / "link.txt").symlink_to(tmp_path / "secret.txt")

    head = work(workspace, "true").head_commit or ""

    assert git(workspace.session.git_dir, "ls-tree", head, "link.txt").startswith("120000 ")
    # The link may also appear after git has found that the file is badly encoded.
    with pytest.raises(OSError, match="symbolic link"):
        add_unencoded(workspace.session.git.at(workspace.session.git_dir, workspace.path), b"link.txt")


DEEP = (
    "import os\nfor _ in range({levels}):\n    os.mkdir({name!r})\n    os.chdir({name!r})\nopen('last', 'w').close()\n"
)
"""A program that makes directories in each other, and a file in the last one."""
TREES = {
    "30 x 200 bytes": ("deep", 30, "d" * 200, {"deep"}),
    "30 x 200 bytes, ignored": ("build", 30, "d" * 200, set()),
    "just too long": ("deep", 16, "d" * 255, {"deep"}),
    "just not too long": ("deep", 15, "d" * 250, set()),
    "1,100 levels": ("deep", 1100, "d", set()),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_of_any_depth_is_delivered_or_named_and_the_session_goes_on(
    workspaces: Workspaces, remote: Path, name: str
) -> None:
    top, levels, directory, left_out = TREES[name]
    push_commit(remote, {".gitignore": "build/\n", "deep.py": DEEP.format(levels=levels, name=directory)})
    first = prepared(workspaces, work_order(remote))

    delivery = work(first, f"echo fixed > fix.txt; mkdir {top}; cd {top}; python3 ../deep.py")

    named = {text.partition("/")[0] for text in delivery.left_out}
    assert (named, delivery.files_changed) == (left_out, 1 + (not left_out and top == "deep"))
    keep(first)
    first.close()
    second = prepared(workspaces, work_order(remote, session=first.session.directory.name))
    assert work(second, "echo again > fix.txt").files_changed == 1
    second.discard()
    assert not second.session.directory.exists()
