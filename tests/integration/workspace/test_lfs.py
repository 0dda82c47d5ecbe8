"""Files that Git LFS tracks: pointers stay pointers, and users are told what the run did not have or could not make."""

from __future__ import annotations

import hashlib
from pathlib import Path

from drone.workspace import Workspaces
from tests.integration.workspace.agent import changed_files, does, keep, work
from tests.support.repositories import bare_remote, prepared, work_order

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
