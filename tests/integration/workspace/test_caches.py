"""What tools leave as a cache is not delivered but named, and stays for the session's next order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from drone.workspace import Workspaces
from tests.integration.workspace.agent import changed_files, deliver, does, keep, work
from tests.integration.workspace.test_workspace_checkpoint import Drone, Run
from tests.support.repositories import MakeWorkspaces, bare_remote, git, prepared, work_order

SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"
TAG = f"printf '{SIGNATURE}\\n# by a tool\\n' > "
SUMS = {"sums.py": "x = 1\n", "kept/__pycache__/old.pyc": "tracked\n", ".gitignore": "ignored/\n"}
TRIES: dict[str, tuple[str, set[str], set[str]]] = {
    "an import writes nothing": ("python3 -c 'import sums'", set(), set()),
    "bytecode beside its source": ("python3 -m compileall -qb .; test -f sums.pyc", set(), {"sums.pyc"}),
    "deep": ("mkdir -p a/b/__pycache__/c; echo 1 > a/b/__pycache__/c/d; echo 1 > a/x", {"a/x"}, {"a/b/__pycache__/"}),
    "one in another": (
        "mkdir -p node_modules/a/__pycache__; echo 1 > node_modules/a/__pycache__/b",
        set(),
        {"node_modules/"},
    ),
    "of tests and checks, and similar names": (
        "for each in .pytest_cache .mypy_cache .ruff_cache .tox tox; do mkdir $each; echo 1 > $each/x; done; "
        "echo 1 > .coverage; echo 1 > .eslintcache; echo 1 > a.DS_Store; echo 1 > pyc",
        {"tox/x", "a.DS_Store", "pyc"},
        {".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".tox/", ".coverage", ".eslintcache"},
    ),
    "a tagged directory, with another cache": (
        f"mkdir -p t/debug t/node_modules; {TAG} t/CACHEDIR.TAG; echo 1 > t/debug/x; echo 1 > t/node_modules/x",
        set(),
        {"t/"},
    ),
    "a tag of another kind": ("mkdir t; echo other > t/CACHEDIR.TAG; echo 1 > t/x", {"t/CACHEDIR.TAG", "t/x"}, set()),
    "a tag at the top": (f"{TAG} CACHEDIR.TAG; echo 1 > one", {"CACHEDIR.TAG", "one"}, set()),
    "a tag that is a link": (f"mkdir t; {TAG} t/tag; ln -s tag t/CACHEDIR.TAG", {"t/CACHEDIR.TAG", "t/tag"}, set()),
    "ignored": ("mkdir -p ignored/__pycache__; echo 1 > ignored/__pycache__/x", set(), set()),
    "tracked, and beside a tracked one": (
        "echo 2 > kept/__pycache__/old.pyc; echo 2 > kept/__pycache__/new.pyc",
        {"kept/__pycache__/old.pyc"},
        {"kept/__pycache__/"},
    ),
    "committed": (
        "mkdir node_modules; echo 1 > node_modules/x; git add -f .; git commit -qm V",
        {"node_modules/x"},
        set(),
    ),
    "many": (
        "for each in $(seq 12); do mkdir -p $each/__pycache__; echo 1 > $each/__pycache__/x; done",
        set(),
        {
            "1/__pycache__/, 10/__pycache__/, 11/__pycache__/, 12/__pycache__/, 2/__pycache__/, 3/__pycache__/, "
            "4/__pycache__/, 5/__pycache__/, 6/__pycache__/, 7/__pycache__/ and 2 more"
        },
    ),
}
APART = "git checkout -q --orphan apart; git add -Af; git commit -qm Apart"
STEPS: dict[str, tuple[Sequence[str], dict[str, str]]] = {
    "committed, tagged, removed and made again": (
        (
            "mkdir -p never/.tox committed/.tox more/.tox again later beside/b no-longer after; "
            "for each in never/.tox/x never/x.pyc never/x committed/.tox/x more/.tox/x again/x.pyc later/x beside/x "
            "beside/b/x no-longer/x after/x; do echo 1 > $each; done; rm -r kept; "
            "git add -A committed more again after; git commit -qm V; echo 1 > more/.tox/y; echo 1 > after/y",
            "echo 2 > committed/.tox/x; rm again/x.pyc; echo 2 > beside/x; echo 2 > beside/b/x; echo 2 > after/x; "
            f"for each in later beside/b no-longer after; do {TAG} $each/CACHEDIR.TAG; done; "
            "mkdir -p kept/__pycache__; echo 2 > kept/__pycache__/old.pyc; echo 1 > kept/__pycache__/new",
            "echo 2 > again/x.pyc; rm no-longer/CACHEDIR.TAG",
        ),
        {
            "never/x": "1",
            "committed/.tox/x": "2",
            "more/.tox/x": "1",
            "again/x.pyc": "2",
            "kept/__pycache__/old.pyc": "2",
            "beside/x": "2",
            "no-longer/x": "1",
            "after/x": "2",
        },
    ),
    "committed, then not": (
        ("echo 1 > x.pyc; git add -A; git commit -qm V; echo 1 > x", "git reset -q HEAD~1"),
        {"x": "1"},
    ),
    "apart": (
        (
            f"mkdir .tox t; {TAG} t/CACHEDIR.TAG; "
            f"for each in .tox/x x.pyc y.pyc t/x x; do echo 1 > $each; done; {APART}",
            "echo 2 > .tox/x; echo 2 > x.pyc; rm y.pyc; echo 2 > t/y",
        ),
        {".tox/x": "2", "x.pyc": "2", "t/CACHEDIR.TAG": SIGNATURE, "t/x": "1", "t/y": "2", "x": "1"},
    ),
    "apart, in a later step, and ignored at first": (
        (
            "mkdir .tox ignored; echo 1 > .tox/x; echo 1 > ignored/x.pyc; echo 1 > x",
            APART,
            "echo 1 > .gitignore",
        ),
        {".tox/x": "1", "ignored/x.pyc": "1", "x": "1", ".gitignore": "1"},
    ),
}
"""What an agent does in the steps of a run, and what of it is delivered, with its contents."""
_CHANGED = re.compile(r"^\+\+\+ b/(\S+)\n@@ .+ @@\n(?:-.*\n)*\+(.+)$", re.MULTILINE)


def test_caches_are_left_out_by_name(workspaces: Workspaces, tmp_path: Path) -> None:
    workspace = prepared(workspaces, work_order(bare_remote(tmp_path / "sums.git", SUMS)))
    wrong = {}
    for name, (line, changed, left_out) in TRIES.items():
        made = work(
            workspace,
            f"git clean -ffdxq; git reset -q --hard {workspace.base_commit}; echo '# more' >> sums.py; {line}",
        )
        named = {text.partition(":")[0] for text in (*made.left_out, *made.caches)}
        if (told := (changed_files(workspace, made) - {"sums.py"}, named)) != (changed, left_out):
            wrong[name] = told
    assert wrong == {}


@pytest.mark.parametrize("name", STEPS)
def test_checkpoints_change_nothing_about_which_caches_are_delivered(
    drone_git: dict[str, str], workspaces_in: MakeWorkspaces, tmp_path: Path, name: str
) -> None:
    lines, expected = STEPS[name]
    drone = Drone(tmp_path / "drone", drone_git, workspaces_in)
    first = Run(drone, work_order(bare_remote(tmp_path / "sums.git", SUMS)))
    first.steps(lines)
    patches = [deliver(first.workspace).patch]
    first.dies()
    for place in (drone, drone.other()):
        patches.append(deliver(Run(place, first.resumed()).workspace).patch)
    assert [dict(_CHANGED.findall(patch.decode())) for patch in patches] == [expected] * 3


def test_a_cache_stays_for_the_next_order_and_is_not_in_a_checkpoint(workspaces: Workspaces, tmp_path: Path) -> None:
    remote = bare_remote(tmp_path / "sums.git", SUMS)
    first = prepared(workspaces, work_order(remote))
    tagged = ("target", "new/t[a]r get", "\\new")
    made_by_tools = "".join(f"; mkdir '{each}'; {TAG} '{each}/CACHEDIR.TAG'" for each in tagged)
    does(first, f"mkdir node_modules new; echo 1 > node_modules/x; echo 1 > new/x{made_by_tools}")
    made = keep(first)
    listed = git(first.session.git_dir, "ls-tree", "--name-only", made.commit)
    assert (set(made.kept_on_disk), set(listed.split()) - {name.split("/")[0] for name in SUMS}) == (
        {f"{each}/: a cache" for each in ("node_modules", *tagged)},
        {"new"},
    )
    first.close()
    second = prepared(workspaces, work_order(remote, session=first.session.directory.name))
    stay = ("node_modules/x", *(f"{each}/CACHEDIR.TAG" for each in tagged))
    assert [name for name in (*stay, "new/x") if (second.path / name).exists()] == [*stay]
