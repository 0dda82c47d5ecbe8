"""What the agent did comes out as one branch, a patch that applies and a bundle, whatever it did to its workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.sandbox import Sandbox, choose
from drone.workspace import Delivery, Workspace, Workspaces
from drone.workspace.encodings import add_unencoded
from tests.support.repositories import (
    MakeWorkspaces,
    calc_project,
    commit_files,
    empty_remote,
    git,
    push_commit,
    work_order,
)
from tests.support.sandboxes import shell

AUTHOR = "Drone <drone@example.org>"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_project(tmp_path / "calc.git")


@pytest.fixture
def workspaces(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces) -> Workspaces:
    return workspaces_in(tmp_path / "workspace", drone_git, choose("auto", os.environ))


@pytest.fixture
def workspace(workspaces: Workspaces, remote: Path) -> Workspace:
    return workspaces.prepare(work_order(remote, order_id="0rder0rder00"), lambda run, sha: b"", lambda: None)


def work(workspace: Workspace, line: str) -> Delivery:
    """Let the agent run a line, then deliver."""
    result = shell(workspace.sandbox, workspace.path, line)
    assert result.return_code == 0, result.output
    return workspace.deliver("fleet/0rder0rder00", "Fix it", AUTHOR)


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


def test_changes_that_are_not_committed_become_one_commit(workspace: Workspace) -> None:
    change = "sed -i 's/a - b/a + b/' calc.py; echo new > new.txt; rm README.md; printf 'a\\0b' > data.bin"
    delivery = work(workspace, change)

    shown = git(workspace.session.git_dir, "log", "-1", "--format=%an <%ae>%n%B", delivery.head_commit or "")
    assert shown == f"{AUTHOR}\nFix it\n\nFleet-Order: 0rder0rder00"
    assert subjects(workspace, delivery) == ["Fix it"]
    # README.md had three lines; the lines of data.bin do not count.
    assert (delivery.files_changed, delivery.lines_added, delivery.lines_removed) == (4, 2, 4)
    assert b"+    return a + b" in delivery.patch


def test_a_repository_with_sha256_objects_is_delivered_with_the_agents_own_commits(
    workspaces: Workspaces, tmp_path: Path
) -> None:
    source = tmp_path / "sha256"
    source.mkdir()
    git(source, "init", "-q", "--object-format=sha256", "--initial-branch=main")
    commit_files(source, {"AGENTS.md": "Be brief."})
    workspace = workspaces.prepare(work_order(source), lambda run, sha: b"", lambda: None)

    line = "git checkout -q -b mine; echo 1 > one; git add one; git commit -qm 'My own commit'"
    assert subjects(workspace, work(workspace, line)) == ["My own commit"]
    assert subjects(workspace, work(workspace, "echo 2 > two")) == ["Fix it", "My own commit"]
    assert workspace.instructions() == "Be brief."


def test_the_patch_applies_to_the_base_with_every_kind_of_change_and_the_bundle_brings_the_branch(
    workspace: Workspace, remote: Path, tmp_path: Path
) -> None:
    line = (
        "head -c 5000 /dev/urandom > image.bin; printf 'a\\r\\nb\\r\\n' > windows.txt; printf 'no newline' > end.txt; "
        "ln -s calc.py link; chmod +x test_calc.py; mkdir -p 'a b/ü'; echo x > 'a b/ü/\"q\".txt'; "
        "mv README.md MOVED.md; : > empty; rm calc.py; mkdir calc.py; echo y > calc.py/inside; "
        "printf x > $(printf 'caf\\351'); printf y > $'with\\nnewline'; ln -s /etc/hostname outside; ln -s / root"
    )

    delivery = work(workspace, line)

    clone = applied(remote, delivery, workspace.base_commit, tmp_path)
    head = delivery.head_commit or ""
    assert git(clone, "write-tree") == git(workspace.session.git_dir, "rev-parse", f"{head}^{{tree}}")
    # Links that lead out are delivered as links.
    modes = git(workspace.session.git_dir, "ls-tree", "-r", head, "outside", "root")
    assert [mode.split()[0] for mode in modes.splitlines()] == ["120000"] * 2
    (tmp_path / "work.bundle").write_bytes(delivery.bundle or b"")
    git(remote, "fetch", "-q", str(tmp_path / "work.bundle"), "fleet/0rder0rder00:taken")
    assert git(remote, "rev-parse", "taken") == head
    again = workspace.deliver("fleet/0rder0rder00", "Fix it", AUTHOR)
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


ENCODINGS = [
    ("working-tree-encoding=UTF-16", b"no byte order mark\n"),
    ("working-tree-encoding=UTF-16LE-BOM", b"odd"),
    ("working-tree-encoding=SHIFT-JIS", b"\xff\xfe not Shift-JIS\n"),
    ("working-tree-encoding=US-ASCII", "grün\n".encode()),
    ("working-tree-encoding=no-such-encoding", b"unknown\n"),
    ("working-tree-encoding", b"no name\n"),
    ("-working-tree-encoding", b"no name either\n"),
]


def test_nothing_changed_is_no_delivery(workspace: Workspace) -> None:
    for line in ("true", "touch calc.py", "echo x > x.cache", "git commit -q --allow-empty -m nothing"):
        assert work(workspace, line) == Delivery(None, workspace.base_commit)


def test_work_in_an_empty_repository_becomes_its_first_commit(workspaces: Workspaces, tmp_path: Path) -> None:
    remote = empty_remote(tmp_path / "empty.git")
    workspace = workspaces.prepare(work_order(remote), lambda run, sha: b"", lambda: None)

    delivery = work(workspace, "echo first > first.txt")

    clone = applied(remote, delivery, None, tmp_path)
    assert (clone / "first.txt").read_text() == "first\n"
    assert workspace.push("fleet/x", None, 60).pushed
    assert git(remote, "rev-parse", "fleet/x") == delivery.head_commit
    committed = work(workspace, "git add first.txt; git commit -qm 'My first'")
    assert git(workspace.session.git_dir, "log", "--format=%s", committed.head_commit or "") == "My first"


@pytest.mark.parametrize(
    "damage",
    [
        "rm -rf .git; ln -s /nowhere .git",
        "echo '[broken' > .git/config",
        "git init -q other && mv other/.git/HEAD .git/HEAD && rm -rf other; git checkout -q --orphan alone",
        "find .git -name index -delete; rm -rf .git/objects",
    ],
)
def test_whatever_became_of_its_git_the_agents_files_are_delivered(workspace: Workspace, damage: str) -> None:
    delivery = work(workspace, f"echo new > new.txt; {damage}")

    assert subjects(workspace, delivery) == ["Fix it"]
    assert delivery.files_changed == 1


def test_history_that_does_not_go_on_from_the_base_comes_as_one_commit_with_a_note(workspace: Workspace) -> None:
    delivery = work(
        workspace, "git checkout -q --orphan alone; echo new > new.txt; git add .; git commit -qm 'All new'"
    )

    assert subjects(workspace, delivery) == ["Fix it"]
    assert "do not descend from the base" in delivery.notes[0]


def test_going_back_to_an_old_commit_is_delivered_as_a_change(
    remote: Path, workspaces: Workspaces, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", str(remote), "clone")
    commit_files(tmp_path / "clone", {"second.txt": "2"})
    git(tmp_path / "clone", "push", "-q")
    workspace = workspaces.prepare(work_order(remote), lambda run, sha: b"", lambda: None)

    delivery = work(workspace, "git reset -q --hard HEAD~1")

    assert subjects(workspace, delivery) == ["Fix it"]
    assert b"deleted file mode" in delivery.patch


def test_hostile_configuration_hooks_and_filters_are_not_executed_at_delivery(
    workspace: Workspace, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung-$1\ncat\n")
    trap.chmod(0o755)
    line = f"""
        for name in core.fsmonitor core.sshCommand core.pager filter.evil.clean filter.evil.process diff.evil.command \
            diff.evil.textconv core.editor gpg.program core.alternateRefsCommand uploadpack.packObjectsHook; do
            git config "$name" "{trap} $name"
        done
        git config core.hooksPath {tmp_path}; git config commit.gpgSign true; git config core.worktree /
        echo '* filter=evil diff=evil' > .gitattributes
        for hook in pre-commit post-checkout reference-transaction post-index-change pre-push; do
            mkdir -p .git/hooks; cp {trap} .git/hooks/$hook; done
        git init -q inner; (cd inner; git config core.fsmonitor "{trap} inner"; echo 1 > a)
        printf '[submodule "inner"]\\n path = inner\\n url = ext::{trap}\\n' > .gitmodules
        echo new > new.txt
    """
    for_agent = workspace.sandbox.for_session(scratch=workspace.session.scratch, read_only=[trap])
    result = shell(for_agent, workspace.path, line)
    assert result.return_code == 0, result.output
    [path.unlink() for path in tmp_path.glob("sprung-*")]

    delivery = workspace.deliver("fleet/0rder0rder00", "Fix it", AUTHOR)
    pushed = workspace.push("fleet/0rder0rder00", None, 60)

    assert list(tmp_path.glob("sprung-*")) == []
    assert pushed.pushed
    assert delivery.files_changed == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_files_that_cannot_be_read_are_left_out(workspace: Workspace) -> None:
    delivery = work(
        workspace, "echo s > secret; chmod 0 secret; mkdir dark; echo 1 > dark/a; chmod 0 dark; echo n > new"
    )

    assert delivery.files_changed == 1
    assert delivery.left_out == ("secret: cannot be read",)


def test_a_push_goes_over_what_is_known_and_over_nothing_else(workspace: Workspace, remote: Path) -> None:
    first = work(workspace, "echo 1 > new.txt")
    assert workspace.push("fleet/a", None, 60).pushed
    theirs = push_commit(remote, {"theirs.txt": "1"}, branch="fleet/a")
    second = work(workspace, "echo 2 > new.txt")

    blind = workspace.push("fleet/a", first.head_commit, 60)
    known = workspace.push("fleet/a", theirs, 60)

    assert (blind.pushed, known.pushed) == (False, True)
    assert "was changed on the remote meanwhile" in (blind.error or "")
    assert git(remote, "rev-parse", "fleet/a") == second.head_commit


def test_a_push_ends_when_its_time_is_up(workspace: Workspace, remote: Path) -> None:
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexec sleep 600\n")
    hook.chmod(0o755)
    work(workspace, "echo 1 > new.txt")

    result = workspace.push("fleet/a", None, 1)

    assert not result.pushed
    assert "exceeded its time limit of 1 s" in (result.error or "")


def test_the_sandbox_sees_neither_the_drones_git_dir_nor_other_sessions(
    tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces, remote: Path, bwrap: Sandbox
) -> None:
    workspaces = workspaces_in(tmp_path / "workspace", drone_git, bwrap)
    workspace = workspaces.prepare(work_order(remote, order_id="0rder0rder00"), lambda run, sha: b"", lambda: None)
    session = workspace.session.directory
    line = f"ls -A {session}; echo '>'; ls -A {session.parent}; echo '>'; ls -A {session.parent.parent}/mirrors/*"

    result = shell(workspace.sandbox, workspace.path, line)

    assert [listed.split() for listed in result.output.split(">")] == [["work"], [session.name], ["objects"]]
    assert (session / "git" / "HEAD").exists()


def test_a_file_without_its_declared_encoding_is_delivered_as_it_is(workspace: Workspace) -> None:
    for number, (attribute, content) in enumerate(ENCODINGS):
        (workspace.path / str(number)).mkdir()
        (workspace.path / str(number) / ".gitattributes").write_text(f"*.txt {attribute}\n")
        (workspace.path / str(number) / "tool.txt").write_bytes(content)
        (workspace.path / str(number) / "tool.txt").chmod(0o755)

    head = work(workspace, "true").head_commit or ""

    blobs = workspace.session.git
    delivered = [blobs.raw("cat-file", "blob", f"{head}:{number}/tool.txt") for number in range(len(ENCODINGS))]
    assert delivered == [content for _, content in ENCODINGS]
    assert git(workspace.session.git_dir, "ls-tree", head, "0/tool.txt").startswith("100755 ")


def test_a_file_with_its_declared_encoding_is_delivered_as_git_would(workspace: Workspace) -> None:
    (workspace.path / ".gitattributes").write_text("*.txt working-tree-encoding=UTF-16\n")
    (workspace.path / "good.txt").write_bytes("grün\n".encode("utf-16"))
    (workspace.path / "bad.txt").write_bytes(b"no byte order mark\n")

    head = work(workspace, "true").head_commit or ""

    assert workspace.session.git.raw("cat-file", "blob", f"{head}:good.txt") == "grün\n".encode()
    assert workspace.session.git.raw("cat-file", "blob", f"{head}:bad.txt") == b"no byte order mark\n"


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


@pytest.mark.parametrize("attribute", ["=UTF-16", ""])
def test_a_repository_that_declares_a_wrong_encoding_can_be_worked_on_order_after_order(
    workspaces: Workspaces, remote: Path, attribute: str
) -> None:
    push_commit(remote, {"plain.txt": "grün, without a mark\n"})
    # Not with `git add`, which would read plain.txt and refuse it.
    file = git(remote, "hash-object", "-w", "--stdin", stdin=f"*.txt working-tree-encoding{attribute}\n".encode())
    entries = f"{git(remote, 'ls-tree', 'main')}\n100644 blob {file}\t.gitattributes\n"
    tree = git(remote, "mktree", stdin=entries.encode())
    git(remote, "update-ref", "refs/heads/main", git(remote, "commit-tree", "-p", "main", "-m", "Encode", tree))
    for order, content in (("0rder0rder01", "first\n"), ("0rder0rder02", "second\n")):
        workspace = workspaces.prepare(work_order(remote, order_id=order), lambda run, sha: b"", lambda: None)
        (workspace.path / "new.txt").write_text(content)
        head = workspace.deliver(f"fleet/{order}", "Fix it", AUTHOR).head_commit or ""
        assert workspace.session.git.raw("cat-file", "blob", f"{head}:new.txt") == content.encode()
        assert git(workspace.session.git_dir, "show", "--format=", "--name-only", head).split() == ["new.txt"]
