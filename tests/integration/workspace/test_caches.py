"""What tools leave as a cache is not delivered but named, and stays for the session's next order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from drone.workspace import Delivery, Workspace, Workspaces
from tests.integration.workspace.test_workspace_checkpoint import Drone, Run
from tests.support.repositories import MakeWorkspaces, bare_remote, git, prepared, work_order
from tests.support.sandboxes import shell

TAG = "printf 'Signature: 8a477f597d28d172789f06886806bc55\\n# by a tool\\n' > "
SUMS = {"sums.py": "x = 1\n", "kept/__pycache__/old.pyc": "tracked\n", ".gitignore": "ignored/\n"}
TRIES: dict[str, tuple[str, set[str], set[str]]] = {
    "an import writes nothing": ("python3 -c 'import sums'", set(), set()),
    "an import that writes": (
        "env -u PYTHONDONTWRITEBYTECODE python3 -c 'import sums'; test -d __pycache__",
        set(),
        {"__pycache__/"},
    ),
    "bytecode beside its source": ("python3 -m compileall -qb .; test -f sums.pyc", set(), {"sums.pyc"}),
    "deep": ("mkdir -p a/b/__pycache__/c; echo 1 > a/b/__pycache__/c/d; echo 1 > a/x", {"a/x"}, {"a/b/__pycache__/"}),
    "one in another": (
        "mkdir -p node_modules/a/__pycache__; echo 1 > node_modules/a/__pycache__/b",
        set(),
        {"node_modules/"},
    ),
    "of tests and checks": (
        "for each in .pytest_cache .mypy_cache .ruff_cache .hypothesis .tox; do mkdir $each; echo 1 > $each/x; done",
        set(),
        {".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/"},
    ),
    "files": (
        "echo 1 > .coverage; echo 1 > .eslintcache; echo 1 > a.DS_Store",
        {"a.DS_Store"},
        {".coverage", ".eslintcache"},
    ),
    "a tagged directory": (
        f"mkdir -p target/debug; {TAG} target/CACHEDIR.TAG; echo 1 > target/debug/x",
        set(),
        {"target/"},
    ),
    "a tag of another kind": ("mkdir t; echo other > t/CACHEDIR.TAG; echo 1 > t/x", {"t/CACHEDIR.TAG", "t/x"}, set()),
    "a tag at the top": (f"{TAG} CACHEDIR.TAG; echo 1 > one", {"CACHEDIR.TAG", "one"}, set()),
    "a tag that is a link": (f"mkdir t; {TAG} t/tag; ln -s tag t/CACHEDIR.TAG", {"t/CACHEDIR.TAG", "t/tag"}, set()),
    "ignored": ("mkdir -p ignored/__pycache__; echo 1 > ignored/__pycache__/x", set(), set()),
    "tracked": ("echo 2 > kept/__pycache__/old.pyc", {"kept/__pycache__/old.pyc"}, set()),
    "beside a tracked one": ("echo 2 > kept/__pycache__/new.pyc", set(), {"kept/__pycache__/"}),
    "committed": (
        "mkdir node_modules; echo 1 > node_modules/x; git add -f .; git commit -qm V",
        {"node_modules/x"},
        set(),
    ),
    "similar names": ("mkdir node_modules2; echo 1 > node_modules2/x; echo 1 > pyc", {"node_modules2/x", "pyc"}, set()),
    "many": (
        "for each in 1 2 3 4 5 6 7 8 9 10 11 12; do mkdir -p $each/__pycache__; echo 1 > $each/__pycache__/x; done",
        set(),
        {
            "1/__pycache__/, 10/__pycache__/, 11/__pycache__/, 12/__pycache__/, 2/__pycache__/, 3/__pycache__/, "
            "4/__pycache__/, 5/__pycache__/, 6/__pycache__/, 7/__pycache__/ and 2 more"
        },
    ),
}
APART = "git checkout -q --orphan apart; git add -Af; git commit -qm Apart"
STEPS: dict[str, tuple[Sequence[str], dict[str, str]]] = {
    "never committed": (("mkdir .tox; echo 1 > .tox/x; echo 1 > x.pyc; echo 1 > x",), {"x": "1"}),
    "committed": (("mkdir .tox; echo 1 > .tox/x; git add -A; git commit -qm V", "echo 2 > .tox/x"), {".tox/x": "2"}),
    "committed, and more": (
        ("mkdir .tox; echo 1 > .tox/x; git add -A; git commit -qm V; echo 1 > .tox/y",),
        {".tox/x": "1"},
    ),
    "committed, then not": (
        ("echo 1 > x.pyc; git add -A; git commit -qm V; echo 1 > x", "git reset -q HEAD~1"),
        {"x": "1"},
    ),
    "committed, removed, and made again": (
        ("echo 1 > x.pyc; git add -A; git commit -qm V", "rm x.pyc", "echo 2 > x.pyc"),
        {"x.pyc": "2"},
    ),
    "tracked, removed, and made again": (
        ("rm -r kept", "mkdir -p kept/__pycache__; echo 2 > kept/__pycache__/old.pyc; echo 1 > kept/__pycache__/new"),
        {"kept/__pycache__/old.pyc": "2"},
    ),
    "apart": ((f"mkdir .tox; echo 1 > .tox/x; echo 1 > x; {APART}", "echo 2 > .tox/x"), {"x": "1"}),
    "apart, in a later step": (("mkdir .tox; echo 1 > .tox/x; echo 1 > x", APART), {"x": "1"}),
    "apart, a file": ((f"echo 1 > x.pyc; {APART}", "echo 2 > x.pyc; echo 1 > x"), {"x": "1"}),
    "apart, and removed": ((f"echo 1 > x.pyc; echo 1 > x; {APART}", "rm x.pyc"), {"x": "1"}),
    "apart, with its tag": (
        (f"mkdir t; {TAG} t/CACHEDIR.TAG; echo 1 > t/x; echo 1 > x; {APART}", "echo 2 > t/y"),
        {"x": "1"},
    ),
    "apart, and ignored at first": (
        ("mkdir ignored; echo 1 > ignored/x.pyc; echo 1 > x", APART, "echo 1 > .gitignore"),
        {"x": "1", ".gitignore": "1"},
    ),
    "tagged later": (("mkdir t; echo 1 > t/x; echo 1 > x", f"{TAG} t/CACHEDIR.TAG"), {"x": "1"}),
    "tagged later, beside work": (
        ("mkdir -p a/b; echo 1 > a/b/x; echo 1 > a/x", f"{TAG} a/b/CACHEDIR.TAG; echo 2 > a/x; echo 2 > a/b/x"),
        {"a/x": "2"},
    ),
    "tagged later, and no longer": (
        ("mkdir t; echo 1 > t/x", f"{TAG} t/CACHEDIR.TAG", "rm t/CACHEDIR.TAG"),
        {"t/x": "1"},
    ),
    "tagged after a commit": (
        ("mkdir t; echo 1 > t/x; git add -A; git commit -qm V; echo 1 > t/y", f"{TAG} t/CACHEDIR.TAG; echo 2 > t/x"),
        {"t/x": "2"},
    ),
}
"""What an agent does in the steps of a run, and what of it is delivered, with its contents."""
_CHANGED = re.compile(r"^\+\+\+ b/(\S+)\n@@ .+ @@\n(?:-.*\n)*\+(.+)$", re.MULTILINE)


def deliver(workspace: Workspace) -> Delivery:
    return workspace.deliver("fleet/0rder0rder00", "Fix it", "Drone <drone@example.org>")


def test_caches_are_left_out_by_name(workspaces: Workspaces, tmp_path: Path) -> None:
    workspace = prepared(workspaces, work_order(bare_remote(tmp_path / "sums.git", SUMS)))
    wrong = {}
    for name, (line, changed, left_out) in TRIES.items():
        anew = f"git clean -ffdxq; git reset -q --hard {workspace.base_commit}; echo '# more' >> sums.py"
        assert shell(workspace.sandbox, workspace.path, f"{anew}; {line}").return_code == 0, name
        made = deliver(workspace)
        ends = ("diff-tree", "-r", "--name-only", str(workspace.base_commit), str(made.head_commit))
        files = set(git(workspace.session.git_dir, *ends).splitlines())
        told = (
            files - {"sums.py"},
            {text.partition(":")[0] for text in (*made.left_out, *made.caches)},
        )
        if told != (changed, left_out):
            wrong[name] = told
    assert wrong == {}


def test_checkpoints_change_nothing_about_which_caches_are_delivered(
    drone_git: dict[str, str], workspaces_in: MakeWorkspaces, tmp_path: Path
) -> None:
    remote, drone = bare_remote(tmp_path / "sums.git", SUMS), Drone(tmp_path / "drone", drone_git, workspaces_in)
    wrong = {}
    for name, (lines, expected) in STEPS.items():
        first = Run(drone, work_order(remote))
        first.steps(lines)
        patches = [deliver(first.workspace).patch]
        first.dies()
        for place in (drone, drone.other()):
            resumed = Run(place, first.resumed())
            patches.append(deliver(resumed.workspace).patch)
            resumed.dies()
        delivered = [dict(_CHANGED.findall(patch.decode())) for patch in patches]
        if delivered != [expected] * 3:
            wrong[name] = delivered
    assert wrong == {}


def test_a_cache_stays_for_the_next_order_and_is_not_in_a_checkpoint(workspaces: Workspaces, tmp_path: Path) -> None:
    remote = bare_remote(tmp_path / "sums.git", SUMS)
    first = prepared(workspaces, work_order(remote))
    tagged = ("target", "new/t[a]r get", "\\new")
    made_by_tools = "".join(f"; mkdir '{each}'; {TAG} '{each}/CACHEDIR.TAG'" for each in tagged)
    line = f"mkdir node_modules new; echo 1 > node_modules/x; echo 1 > new/x{made_by_tools}"
    assert shell(first.sandbox, first.path, line).return_code == 0
    made = first.checkpoint("0run0run0run", has_secret=lambda _: False)
    listed = git(first.session.git_dir, "ls-tree", "--name-only", made.commit)
    assert (set(made.kept_on_disk), set(listed.split()) - {name.split("/")[0] for name in SUMS}) == (
        {f"{each}/: a cache" for each in ("node_modules", *tagged)},
        {"new"},
    )
    first.close()
    second = prepared(workspaces, work_order(remote, session=first.session.directory.name))
    stay = ("node_modules/x", *(f"{each}/CACHEDIR.TAG" for each in tagged))
    assert [name for name in (*stay, "new/x") if (second.path / name).exists()] == [*stay]
