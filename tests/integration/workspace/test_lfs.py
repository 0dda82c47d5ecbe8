"""Files that Git LFS tracks: pointers stay pointers, and users are told what the run did not have or could not make."""

from __future__ import annotations

import hashlib
from pathlib import Path

from drone.workspace import Workspaces
from shared.work_order import Base
from tests.integration.workspace.agent import BRANCH, changed_files, deliver, does, keep, work
from tests.support.repositories import bare_remote, git, prepared, push_commit, work_order

ATTRIBUTES = "*.bin filter=lfs diff=lfs merge=lfs -text\n/assets/** filter=lfs\n"


def pointer(content: str) -> str:
    encoded = content.encode()
    oid = hashlib.sha256(encoded).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(encoded)}\n"


FILES = {
    ".gitattributes": ATTRIBUTES,
    "a.txt": "x\n",
    "d.bin": pointer("real\n"),
    "assets/ü b.csv": pointer("1;2\n"),
    "plain.bin": "never a pointer\n",
}
POINTERS = {"d.bin", "assets/ü b.csv"}
TRIES: dict[str, tuple[str, set[str], set[str], set[str]]] = {
    "another file": ("echo y > a.txt", {"a.txt"}, POINTERS, set()),
    "content that was fetched": ("echo real > d.bin; echo '1;2' > assets/*.csv", set(), set(), set()),
    "other content of the same size": ("echo Real > d.bin", {"d.bin"}, {"assets/ü b.csv"}, {"d.bin"}),
    "other content, committed": ("echo more > d.bin; git commit -qam M", {"d.bin"}, {"assets/ü b.csv"}, {"d.bin"}),
    "a new file": ("echo new > new.bin", {"new.bin"}, POINTERS, {"new.bin"}),
    "a new pointer": (f"printf '{pointer('new')}' > new.bin", {"new.bin"}, {*POINTERS, "new.bin"}, set()),
    "a new file, committed as a pointer": (
        f"printf '{pointer('new')}' > new.bin; git add new.bin; git commit -qm M; printf new > new.bin",
        {"new.bin"},
        POINTERS,
        {"new.bin"},
    ),
    "content that was fetched, moved and committed": (
        "git mv d.bin e.bin; git commit -qm M; echo real > e.bin",
        {"d.bin", "e.bin"},
        {"assets/ü b.csv"},
        set(),
    ),
    "another pointer": (f"printf '{pointer('other')}' > d.bin", {"d.bin"}, POINTERS, set()),
    "removed": ("rm d.bin", {"d.bin"}, {"assets/ü b.csv"}, set()),
    "moved": ("mv d.bin e.bin", {"d.bin", "e.bin"}, {"e.bin", "assets/ü b.csv"}, set()),
    "a link": ("ln -sf /etc/passwd d.bin", {"d.bin"}, {"assets/ü b.csv"}, {"d.bin"}),
    "a plain file of before": ("echo 2 >> plain.bin", {"plain.bin"}, POINTERS, {"plain.bin"}),
}


def test_a_pointer_stays_and_what_is_no_pointer_any_more_is_delivered_with_a_note(
    workspaces: Workspaces, tmp_path: Path
) -> None:
    workspace = prepared(workspaces, work_order(bare_remote(tmp_path / "lfs.git", FILES)))
    wrong = {}
    for name, (line, changed, pointers, plain) in TRIES.items():
        made = work(workspace, f"git clean -ffdxq; git reset -q --hard {workspace.base_commit}; {line}")
        noted = [
            {note.partition(":")[0] for note in made.notes if text in note} for text in ("did not have", "migrate")
        ]
        if (told := (changed_files(workspace, made), *noted)) != (changed, pointers, plain):
            wrong[name] = told
    assert wrong == {}


def test_content_that_was_fetched_is_in_no_checkpoint(workspaces: Workspaces, tmp_path: Path) -> None:
    workspace = prepared(workspaces, work_order(bare_remote(tmp_path / "lfs.git", FILES)))
    seen = []
    for line in ("true", "echo real > d.bin", "touch d.bin", "echo Real > d.bin"):
        does(workspace, line)
        made = keep(workspace)
        seen.append((made.changed, made.left_out))
    assert seen == [(False, ()), (False, ()), (False, ()), (True, ())]


def test_content_that_the_agent_made_is_kept_and_delivered_also_if_it_committed_a_pointer(
    workspaces: Workspaces, tmp_path: Path
) -> None:
    workspace = prepared(workspaces, work_order(bare_remote(tmp_path / "lfs.git", FILES)))
    made = work(workspace, TRIES["a new file, committed as a pointer"][0])
    for commit in (made.head_commit, keep(workspace).commit, deliver(workspace).head_commit):
        assert git(workspace.session.git_dir, "show", f"{commit}:new.bin") == "new"


def test_a_pointer_of_the_projects_branch_is_not_the_agents_and_one_of_its_earlier_work_is(
    workspaces: Workspaces, tmp_path: Path
) -> None:
    remote = bare_remote(tmp_path / "lfs.git", FILES)
    first = prepared(workspaces, work_order(remote))
    commits_pointer, _, _, _ = TRIES["a new file, committed as a pointer"]
    made = work(first, commits_pointer)
    assert first.push(BRANCH, None, 60).pushed
    push_commit(remote, {"theirs.bin": pointer("theirs")})
    second = prepared(workspaces, work_order(remote, base=Base(commit=made.head_commit, branch=BRANCH)))
    made = work(second, f"git merge -q origin/main; printf theirs > theirs.bin; {commits_pointer}")
    assert changed_files(second, made) == {"theirs.bin"}
    assert git(second.session.git_dir, "show", f"{made.head_commit}:theirs.bin") == pointer("theirs").strip()
