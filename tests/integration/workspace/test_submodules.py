"""A submodule is delivered as it is in the tree, removed or replaced; what is in its directory is named instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.workspace import Delivery, Workspace, Workspaces
from tests.support.repositories import bare_remote, git, prepared, work_order
from tests.support.sandboxes import shell

MODULES = (
    '[submodule "lib"]\n\tpath = lib\n\turl = ./nowhere\n[submodule "b"]\n\tpath = "deep/a b/ü"\n\turl = ./nowhere\n'
)
LINKS = ("lib", "deep/a b/ü", "undeclared")


@pytest.fixture
def with_submodules(tmp_path: Path) -> Path:
    """A repository with three submodules, of which `.gitmodules` names two."""
    remote = bare_remote(tmp_path / "with.git", {"a.txt": "x\n", ".gitmodules": MODULES})
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(remote), str(clone))
    head = git(clone, "rev-parse", "HEAD")
    for path in LINKS:
        git(clone, "update-index", "--add", "--cacheinfo", f"160000,{head},{path}")
    git(clone, "commit", "-q", "-m", "Add submodules")
    git(clone, "push", "-q", "origin", "HEAD:main")
    return remote


def deliver(workspace: Workspace) -> Delivery:
    return workspace.deliver("fleet/0rder0rder00", "Fix it", "Drone <drone@example.org>")


def changes(workspace: Workspace, made: Delivery) -> dict[str, str]:
    """The new kind of each path that differs from the base: of a file, a link, a submodule, or empty if it is gone."""
    if made.head_commit is None:
        return {}
    listing = workspace.session.git.raw("diff-tree", "-r", "-z", str(workspace.base_commit), made.head_commit)
    fields = listing.decode().split("\0")
    kinds = {"100644": "file", "120000": "link", "160000": "submodule", "000000": ""}
    return {path: kinds[facts.split()[1]] for facts, path in zip(fields[::2], fields[1::2], strict=False)}


MADE = (
    "git init -q lib; git -C lib -c user.name=a -c user.email=b commit -q --allow-empty -m Theirs; "
    'git -C lib checkout -q --detach; git update-index --cacheinfo 160000,"$(git -C lib rev-parse HEAD)",lib; '
    "git commit -q -m Bump"
)
"""A submodule whose repository is there, and whose commit the agent recorded."""
TRIES: dict[str, tuple[str, dict[str, str], set[str]]] = {
    "nothing": ("true", {}, set()),
    "a new file in each": (
        "for each in lib 'deep/a b/ü' undeclared; do echo hi > \"$each/new.txt\"; done",
        {},
        {"lib/", "deep/a b/ü/", "undeclared/"},
    ),
    "only an empty directory in it": ("mkdir lib/empty", {}, {"lib/"}),
    "replaced by a file": ("rmdir lib; echo f > lib", {"lib": "file"}, set()),
    "replaced by a link": ("rmdir lib; ln -s a.txt lib", {"lib": "link"}, set()),
    "its parent replaced by a link": ("rm -r deep; ln -s /etc deep", {"deep": "link", "deep/a b/ü": ""}, set()),
    "removed with git": ("git rm -q lib", {".gitmodules": "file", "lib": ""}, set()),
    "removed with git and committed": (
        "git rm -q lib; git commit -q -m Remove",
        {".gitmodules": "file", "lib": ""},
        set(),
    ),
    "moved with git": ("git mv lib lib2", {".gitmodules": "file", "lib": ""}, {"lib2/"}),
    "moved with git and committed": (
        "git mv lib lib2; git commit -q -m Move",
        {".gitmodules": "file", "lib": "", "lib2": "submodule"},
        set(),
    ),
    "directory removed": ("rmdir undeclared", {"undeclared": ""}, set()),
    "replaced by a directory": (
        "git rm -q lib; mkdir lib; echo hi > lib/new.txt",
        {".gitmodules": "file", "lib": "", "lib/new.txt": "file"},
        set(),
    ),
    "all gone": ("rm -rf lib deep undeclared .gitmodules", {".gitmodules": "", **dict.fromkeys(LINKS, "")}, set()),
    "a repository in it": (
        "git init -q lib; echo 1 > lib/one",
        {},
        {"lib/"},
    ),
    "a link to elsewhere as its git": ("ln -s /root/.git lib/.git", {}, {"lib/"}),
    "at its commit": (MADE, {"lib": "submodule"}, set()),
    "at its commit, with a change": (f"{MADE}; echo 1 > lib/one", {"lib": "submodule"}, {"lib/"}),
    "at another commit": (
        f"{MADE}; git -C lib -c user.name=a -c user.email=b commit -q --allow-empty -m More",
        {"lib": "submodule"},
        {"lib/"},
    ),
    "a new one": (
        "git init -q inner; echo 1 > inner/a",
        {},
        {"inner/"},
    ),
}


def test_a_submodule_is_delivered_as_it_is_in_the_tree_and_a_change_in_it_is_named(
    workspaces: Workspaces, with_submodules: Path
) -> None:
    workspace = prepared(workspaces, work_order(with_submodules))
    wrong = {}
    for name, (line, changed, left_out) in TRIES.items():
        anew = f"rm -rf ./* .gitmodules; git reset -q --hard {workspace.base_commit}; echo ok > a.txt"
        assert shell(workspace.sandbox, workspace.path, f"{anew}; {line}").return_code == 0, name
        made = deliver(workspace)
        told = changes(workspace, made), {text.partition(":")[0] for text in made.left_out}
        if told != ({"a.txt": "file"} | changed, left_out):
            wrong[name] = told
    assert wrong == {}


def test_checkpoints_follow_a_submodule_that_goes_and_comes_back(workspaces: Workspaces, with_submodules: Path) -> None:
    workspace = prepared(workspaces, work_order(with_submodules))
    seen = []
    for line in ("true", "rmdir lib", "true", "echo f > lib", "rm lib; mkdir lib", "echo 1 > lib/one", "rm lib/one"):
        assert shell(workspace.sandbox, workspace.path, line).return_code == 0
        made = workspace.checkpoint("0run0run0run", has_secret=lambda _: False)
        listed = git(workspace.session.git_dir, "ls-tree", made.commit or str(workspace.base_commit), "lib")
        seen.append((listed[:6], len(made.left_out)))
    kept, gone = ("160000", 0), ("", 0)
    assert seen == [kept, gone, gone, ("100644", 0), kept, ("160000", 1), kept]
    assert deliver(workspace).head_commit is None


def test_the_next_order_of_a_session_finds_the_directories_of_submodules_empty(
    workspaces: Workspaces, with_submodules: Path
) -> None:
    first = prepared(workspaces, work_order(with_submodules))
    line = "echo 1 > lib/one; git init -q undeclared; rm -r deep; ln -s /etc deep"
    assert shell(first.sandbox, first.path, line).return_code == 0
    deliver(first)
    first.close()

    second = prepared(workspaces, work_order(with_submodules, session=first.session.directory.name))

    assert [list((second.path / path).iterdir()) for path in LINKS] == [[], [], []]
    assert {(second.path / path).stat().st_uid for path in LINKS} == {second.path.stat().st_uid}
    assert deliver(second) == Delivery(None, second.base_commit)
