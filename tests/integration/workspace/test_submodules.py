"""A submodule is delivered as it is in the tree, removed or replaced; what is in its directory is named instead."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from drone.local.without_fleet import MemoryStore
from drone.runs import delivery as runs_delivery
from drone.sandbox import Sandbox
from drone.workspace import Delivery, Workspace, Workspaces, note_of_submodules, note_of_unfetched, submodule_sources
from drone.workspace.cleaning import borrowed
from drone.workspace.locks import held
from shared.errors import Forbidden
from shared.names import new_id
from shared.redaction import Redactor
from shared.work_order import Resumed
from tests.integration.workspace.agent import deliver, does, ending, keep, work
from tests.support.repositories import MakeWorkspaces, bare_remote, git, prepared, work_order

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


def changes(workspace: Workspace, made: Delivery) -> dict[str, str]:
    """The new kind of each path that differs from the base: of a file, a link, a submodule, or empty if it is gone."""
    if made.head_commit is None:
        return {}
    listing = workspace.session.git.uninterrupted().raw(
        "diff-tree", "-r", "-z", str(workspace.base_commit), made.head_commit
    )
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
    "moved with git": ("git mv lib lib2", {".gitmodules": "file", "lib": ""}, {"lib2/"}),
    "moved with git and committed": (
        "git mv lib lib2; git commit -q -m Move",
        {".gitmodules": "file", "lib": "", "lib2": "submodule"},
        set(),
    ),
    "replaced by a directory": (
        "git rm -q lib; mkdir lib; echo hi > lib/new.txt",
        {".gitmodules": "file", "lib": "", "lib/new.txt": "file"},
        set(),
    ),
    "all gone": ("rm -rf lib deep undeclared .gitmodules", {".gitmodules": "", **dict.fromkeys(LINKS, "")}, set()),
    "repositories in it and beside it": (
        "git init -q lib; echo 1 > lib/one; git init -q inner; echo 1 > inner/a",
        {},
        {"lib/", "inner/"},
    ),
    "a link to elsewhere as its git": ("ln -s /root/.git lib/.git", {}, {"lib/"}),
    "at its commit": (MADE, {"lib": "submodule"}, set()),
    "at its commit, with a change": (f"{MADE}; echo 1 > lib/one", {"lib": "submodule"}, {"lib/"}),
    "at another commit": (
        f"{MADE}; git -C lib -c user.name=a -c user.email=b commit -q --allow-empty -m More",
        {"lib": "submodule"},
        {"lib/"},
    ),
}


def test_a_submodule_is_delivered_as_it_is_in_the_tree_and_a_change_in_it_is_named(
    workspaces: Workspaces, with_submodules: Path
) -> None:
    workspace = prepared(workspaces, work_order(with_submodules))
    wrong = {}
    for name, (line, changed, left_out) in TRIES.items():
        anew = f"rm -rf ./* .gitmodules; git reset -q --hard {workspace.base_commit}; echo ok > a.txt"
        made = work(workspace, f"{anew}; {line}")
        told = changes(workspace, made), {text.partition(":")[0] for text in made.left_out}
        if told != ({"a.txt": "file"} | changed, left_out):
            wrong[name] = told
    assert wrong == {}


def test_checkpoints_follow_a_submodule_that_goes_and_comes_back(workspaces: Workspaces, with_submodules: Path) -> None:
    workspace = prepared(workspaces, work_order(with_submodules))
    seen = []
    for line in ("true", "rmdir lib", "true", "echo f > lib", "rm lib; mkdir lib", "echo 1 > lib/one", "rm lib/one"):
        does(workspace, line)
        made = keep(workspace)
        listed = git(workspace.session.git_dir, "ls-tree", made.commit or str(workspace.base_commit), "lib")
        seen.append((listed[:6], len(made.kept_on_disk)))
    kept, gone = ("160000", 0), ("", 0)
    assert seen == [kept, gone, gone, ("100644", 0), kept, ("160000", 1), kept]
    assert deliver(workspace).head_commit is None


def test_the_next_order_of_a_session_finds_the_directories_of_submodules_empty(
    workspaces: Workspaces, with_submodules: Path
) -> None:
    first = prepared(workspaces, work_order(with_submodules))
    work(first, "echo 1 > lib/one; git init -q undeclared; rm -r deep; ln -s /etc deep")
    first.close()

    second = prepared(workspaces, work_order(with_submodules, session=first.session.directory.name))

    assert [list((second.path / path).iterdir()) for path in LINKS] == [[], [], []]
    assert {(second.path / path).stat().st_uid for path in LINKS} == {second.path.stat().st_uid}
    assert deliver(second) == Delivery(None, second.base_commit)


def test_a_link_where_a_submodules_parent_was_leads_the_next_order_to_nothing_outside(
    workspaces: Workspaces, with_submodules: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside" / "a b" / "ü"
    outside.mkdir(parents=True)
    (outside / "kept").touch()
    first = prepared(workspaces, work_order(with_submodules))
    does(first, f"rm -r deep; ln -s {tmp_path / 'outside'} deep")
    first.close()

    second = prepared(workspaces, work_order(with_submodules, session=first.session.directory.name))

    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert ((second.path / "deep").is_symlink(), list((second.path / LINKS[1]).iterdir())) == (False, [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root can enter every directory")
def test_a_submodule_in_a_locked_directory_is_delivered_as_it_was(
    workspaces: Workspaces, with_submodules: Path
) -> None:
    workspace = prepared(workspaces, work_order(with_submodules))
    made = work(workspace, "chmod 0 deep; echo ok > a.txt")
    (workspace.path / "deep").chmod(0o755)
    assert changes(workspace, made) == {"a.txt": "file"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repositories of `initialized`, to copy."""
    path = tmp_path_factory.mktemp("submodules")
    bare_remote(path / "inner.git", {"i.txt": "inner\n"})
    bare_remote(path / "lib.git", {"l.txt": "lib\n", ".gitignore": "*.o\n"})
    with_gitlinks(path / "lib.git", {"deep/inner": "../inner.git"})
    bare_remote(path / "app.git", {"a.txt": "x\n"})
    with_gitlinks(path / "app.git", {"lib": "../lib.git"})
    return path


@pytest.fixture
def initialized(template: Path, tmp_path: Path) -> Path:
    """A project with the submodule `lib`, which has the submodule `deep/inner`; both are beside it."""
    for name in ("inner.git", "lib.git", "app.git"):
        shutil.copytree(template / name, tmp_path / name)
    return tmp_path / "app.git"


def with_gitlinks(remote: Path, urls: dict[str, str], commits: dict[str, str] | None = None) -> Path:
    """Add submodules to a bare remote, at the heads of the repositories beside it, or at these commits."""
    clone = remote.with_name(f"{remote.name}-{new_id()}")
    git(remote.parent, "clone", "-q", str(remote), str(clone))
    for path, url in urls.items():
        beside = remote.parent / url.rpartition("/")[2]
        commit = (commits or {}).get(path) or git(beside if (beside / "HEAD").exists() else clone, "rev-parse", "HEAD")
        git(clone, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
        git(clone, "config", "--file", ".gitmodules", f"submodule.{path}.path", path)
        git(clone, "config", "--file", ".gitmodules", f"submodule.{path}.url", url)
    git(clone, "add", ".gitmodules")
    git(clone, "commit", "-q", "-m", "Add submodules")
    git(clone, "push", "-q", "origin", "HEAD:main")
    return remote


def test_submodules_and_those_in_them_are_as_after_a_clone_that_recurses(
    workspaces: Workspaces, initialized: Path, tmp_path: Path
) -> None:
    workspace = prepared(workspaces, work_order(initialized))

    lent = {str(path) for path in (tmp_path / "workspace" / "mirrors").glob("*.git")}
    assert note_of_submodules(workspace.session.submodules).startswith(
        "Submodules in the workspace: lib; lib/deep/inner."
    )
    assert (len(lent), borrowed([workspace.session.directory])) == (3, lent)
    assert does(workspace, "cat lib/l.txt lib/deep/inner/i.txt") == "lib\ninner\n"
    assert does(workspace, "git status --porcelain; git -C lib status --porcelain") == ""
    listed = does(workspace, "git submodule status --recursive").splitlines()
    assert [(line[0], line.split()[1]) for line in listed] == [(" ", "lib"), (" ", "lib/deep/inner")]
    assert does(workspace, "git -C lib log --oneline origin/main | wc -l").strip() == "2"
    assert keep(workspace).is_whole
    assert deliver(workspace) == Delivery(None, workspace.base_commit)


CHANGED: dict[str, tuple[str, dict[str, str], dict[str, int], set[str]]] = {
    "nothing": ("touch lib/l.txt; echo 1 > lib/x.o; mkdir lib/__pycache__; echo 1 > lib/__pycache__/x", {}, {}, set()),
    "files of every kind": (
        "cd lib; echo 1 >> l.txt; chmod +x l.txt; echo 2 > new; rm .gitignore; "
        "printf '\\0\\1' > b.bin; ln -s /etc link; echo 1 > 'a b\t\"ü'",
        {},
        {"lib": 6},
        set(),
    ),
    "also in the one in it": (
        "rm lib/l.txt lib/deep/inner/i.txt; echo 2 > lib/deep/inner/n",
        {},
        {"lib": 1, "lib/deep/inner": 2},
        set(),
    ),
    "the one in it removed": ("rm -rf lib/deep", {}, {"lib": 1}, set()),
    "its git removed": ("rm -rf lib/.git; echo 1 >> lib/l.txt", {}, {"lib": 1}, set()),
    "its git replaced": ("rm -rf lib/.git; git init -q lib; echo 1 >> lib/l.txt", {}, {"lib": 1}, set()),
    "its git full of programs": (
        "git -C lib config core.fsmonitor 'touch MARK; false'; echo '* filter=x' > lib/.gitattributes; "
        "git -C lib config filter.x.clean 'touch MARK; cat'",
        {},
        {"lib": 1},
        set(),
    ),
    "to another commit of its repository": (
        "rm -rf lib/deep; git -C lib checkout -q HEAD~1; echo 1 > lib/one",
        {"lib": "submodule"},
        {"lib": 1},
        set(),
    ),
    "to another commit of its repository, recorded": (
        "rm -rf lib/deep; git -C lib checkout -q HEAD~1; git add lib; git commit -q -m Down",
        {"lib": "submodule"},
        {},
        set(),
    ),
    "to a commit of its own, recorded, and more": (
        "cd lib; echo 1 > one; git add one; git commit -q -m One; cd ..; git add lib; git commit -q -m Up; "
        "echo 2 > lib/two",
        {},
        {"lib": 2},
        set(),
    ),
    "something that cannot be delivered": (
        "echo 1 > lib/n; git init -q lib/own; mkfifo lib/p",
        {},
        {"lib": 1},
        {"lib/own/", "lib/p"},
    ),
    "removed with git": ("git rm -q -f lib", {".gitmodules": "file", "lib": ""}, {}, set()),
    "replaced by a link": ("rm -rf lib; ln -s /etc lib", {"lib": "link"}, {}, set()),
    "a link to elsewhere in it": ("rm -rf lib/deep; ln -s /etc lib/deep", {}, {"lib": 2}, set()),
}


def test_a_change_in_a_submodule_is_in_the_patch_and_nothing_of_the_submodule_is_run(
    workspaces: Workspaces, initialized: Path, tmp_path: Path
) -> None:
    wrong: dict[str, object] = {}
    session = None
    theirs, mark = tmp_path / "theirs", tmp_path / "ran"
    git(tmp_path, "-c", "protocol.file.allow=always", "clone", "-q", "--recurse-submodules", str(initialized), "theirs")
    for name, (line, changed, files, left_out) in CHANGED.items():
        workspace = prepared(workspaces, work_order(initialized, session=session))
        session = workspace.session.directory.name
        does(workspace, f"{line.replace('MARK', str(mark))}; cd {workspace.path}; echo ok > a.txt")
        kept = keep(workspace)
        made = deliver(workspace)
        told = changes(workspace, made), {each.path: each.files for each in made.submodules}
        named = {text.partition(":")[0] for text in made.left_out}
        if (*told, named) != ({"a.txt": "file"} | changed, files, left_out):
            wrong[name] = told, made.left_out
        clone = applied(theirs, tmp_path / name, workspace, made)
        if files_of(clone) != files_of(workspace.path) or kept.is_whole == bool(files or left_out):
            wrong[name] = made.patch, kept
        workspace.close()
    assert (wrong, mark.exists()) == ({}, False)


def applied(theirs: Path, clone: Path, workspace: Workspace, made: Delivery) -> Path:
    """A copy of a clone, with the commits and the submodules that the patch builds on, after the patch."""
    shutil.copytree(theirs, clone, symlinks=True)
    for path, around in (("deep/inner", clone / "lib"), ("lib", clone)):
        still = workspace.path / (around / path).relative_to(clone)
        if still.is_symlink() or not still.is_dir():
            git(around, "submodule", "deinit", "-q", "-f", path)
    if changes(workspace, made).get("lib") == "submodule":
        git(clone / "lib", "checkout", "-q", "-f", "HEAD~1")
        git(clone / "lib", "clean", "-ffdxq")
    git(clone, "apply", "--exclude=lib" if still.is_dir() and not still.is_symlink() else "-v", "-", stdin=made.patch)
    return clone


def files_of(work: Path) -> dict[str, object]:
    """The files and links, without what git has for itself or ignores."""
    found = {}
    for path in work.rglob("*"):
        if not {".git", "__pycache__", "own", "p", "x.o"} & set(path.relative_to(work).parts):
            if path.is_symlink():
                found[str(path.relative_to(work))] = path.readlink()
            elif path.is_file():
                found[str(path.relative_to(work))] = path.read_bytes()
    return found


def test_a_run_that_is_asked_to_end_delivers_the_changes_in_submodules_while_others_fetch_these(
    workspaces: Workspaces, initialized: Path, tmp_path: Path
) -> None:
    own = "to a commit of its own, recorded, and more"
    for name in ("also in the one in it", "to another commit of its repository", own):
        line, changed, files, _ = CHANGED[name]
        workspace = ending(workspaces, work_order(initialized))
        does(workspace, line)
        with ExitStack() as others:
            for lock in (tmp_path / "workspace" / "mirrors").glob("*.lock"):
                others.enter_context(held(lock, seconds=0, check=lambda: None))
            kept, made = keep(workspace), deliver(workspace)
        told = changes(workspace, made), {each.path: each.files for each in made.submodules}
        assert (kept.is_whole, *told) == (False, changed, files), name


UNFETCHED = {
    "elsewhere": ("https://evil.example/lib.git", "evil.example"),
    "on this machine's network": ("http://127.0.0.1:6379/lib.git", "127.0.0.1"),
    "a program": ("ext::sh -c 'touch /tmp/ran'", "ext"),
    "an option": ("--upload-pack=touch /tmp/ran", "--upload-pack"),
    "not beside": ("/etc", "/etc"),
    "nowhere": ("../nowhere.git", "nowhere.git"),
    "no url": ("", "no URL"),
    "not allowed": ("../secret.git", "policy"),
    "no such commit": ("../inner.git", "has no commit"),
}


def test_a_submodule_that_may_not_or_cannot_be_fetched_is_named_with_the_reason_and_is_empty(
    tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces, initialized: Path, chosen: Sandbox
) -> None:
    def allow(url: str) -> None:
        if "secret" in url:
            raise Forbidden("the policy does not allow it", code="E-POLICY-ORDER")

    bare_remote(tmp_path / "secret.git", {"s.txt": "secret\n"})
    with_gitlinks(initialized, {name: url for name, (url, _) in UNFETCHED.items()}, {"no such commit": "1" * 40})
    workspaces = workspaces_in(tmp_path / "workspace", drone_git, chosen, allow)

    workspace = prepared(workspaces, work_order(initialized))

    reasons = {each.path: each.why_not for each in workspace.session.submodules if not each.is_fetched}
    assert {name: UNFETCHED[name][1] in reason for name, reason in reasons.items()} == dict.fromkeys(UNFETCHED, True)
    assert [list((workspace.path / path).iterdir()) for path in UNFETCHED] == [[] for _ in UNFETCHED]
    assert (workspace.path / "lib" / "l.txt").exists()
    assert deliver(workspace) == Delivery(None, workspace.base_commit)
    assert [name in note_of_unfetched(workspace.session.submodules) for name in UNFETCHED] == [True] * len(UNFETCHED)


def test_submodules_are_fetched_up_to_a_bound(
    workspaces: Workspaces, initialized: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submodule_sources, "DEEPEST", 1)
    deep = prepared(workspaces, work_order(initialized))
    assert [(each.path, each.is_fetched) for each in deep.session.submodules] == [
        ("lib", True),
        ("lib/deep/inner", False),
    ]
    monkeypatch.setattr(submodule_sources, "DEEPEST", 8)
    monkeypatch.setattr(submodule_sources, "MOST", 1)
    many = prepared(workspaces, work_order(initialized))
    assert [each.is_fetched for each in many.session.submodules] == [True, False]


def test_a_known_commit_of_a_submodule_is_not_asked_for_again_and_a_later_order_begins_with_it_unchanged(
    workspaces: Workspaces, initialized: Path, tmp_path: Path
) -> None:
    first = prepared(workspaces, work_order(initialized))
    does(first, "echo 1 >> lib/l.txt; git -C lib commit -q -a -m Mine; echo kept > kept")
    first.close()
    (tmp_path / "lib.git").rename(tmp_path / "gone.git")

    second = prepared(workspaces, work_order(initialized, session=first.session.directory.name))

    assert does(second, "cat lib/l.txt lib/deep/inner/i.txt; git status --porcelain") == "lib\ninner\n"
    assert deliver(second) == Delivery(None, second.base_commit)


def test_a_machine_with_its_users_own_repositories_fetches_none_of_them_as_a_submodule(
    tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces, initialized: Path, chosen: Sandbox
) -> None:
    here = workspaces_in(tmp_path / "workspace", drone_git, chosen)
    workspace = prepared(here, work_order(initialized))
    assert [(each.path, each.is_fetched) for each in workspace.session.submodules] == [("lib", False)]


def test_a_change_in_a_submodule_alone_is_work_without_a_branch_and_is_searched_for_secrets(
    workspaces: Workspaces, initialized: Path, tmp_path: Path
) -> None:
    key = "Qk7-Zx9Wv2Tp4Ls6Rm1Jd8Hf3Gb5Ny0Cu_Ea"
    order, store = work_order(initialized), MemoryStore()
    workspace = prepared(workspaces, order)
    does(workspace, "echo 1 >> lib/deep/inner/i.txt")

    delivered, (remark,) = runs_delivery.deliver(order, workspace, store, None)

    assert (delivered.branch, delivered.head_commit, delivered.bundle_sha256) == (None, None, None)
    assert (delivered.files_changed, delivered.lines_added, delivered.left_out) == (1, 1, ())
    assert store.get("", delivered.patch_sha256 or "").startswith(
        b"diff --git a/lib/deep/inner/i.txt b/lib/deep/inner/"
    )
    assert "git apply --include='lib/deep/inner/*'" in remark
    does(workspace, f"printf 'a\\0{key}' > lib/deep/inner/data.bin; echo '{key}' > lib/l.txt")
    places = workspace.places_of_secrets(deliver(workspace), Redactor([key]))
    assert places == ["lib/l.txt line 1", "a version of lib/deep/inner/data.bin"]


def test_a_change_in_a_submodule_stays_on_the_disk_of_its_run_and_another_is_told_that_it_does_not_have_it(
    workspaces: Workspaces, elsewhere: Workspaces, initialized: Path
) -> None:
    order = work_order(initialized)
    first = prepared(workspaces, order)
    line = "echo 1 >> lib/l.txt; echo 2 > lib/deep/inner/n; echo 3 > a.txt; mkdir node_modules; touch node_modules/x"
    does(first, line)
    made = first.checkpoint(order.run_id, has_secret=lambda _: False)
    assert (made.left_out, made.is_whole) == ((), False)
    assert [each.partition(":")[0] for each in made.kept_on_disk] == ["lib/", "lib/deep/inner/", "node_modules/"]
    first.close()
    facts = {"run_id": order.run_id, "seq": 7, "base": first.base_commit, "commit": made.commit}
    resumed = order.model_copy(update={"resumed": Resumed(**facts, bundle="b", bundle_run="r")})
    for drone, content in ((workspaces, "lib\n1\n2\n3\n"), (elsewhere, "lib\n3\n")):
        again = prepared(drone, resumed)
        again.go_back(resumed.resumed or Resumed(**facts), lambda run, name: made.bundle or b"")
        assert does(again, "cat lib/l.txt lib/deep/inner/n a.txt 2>/dev/null || true") == content
        assert does(again, "git submodule status --recursive | wc -l").strip() == "2"
        again.close()
