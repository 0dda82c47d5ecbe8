"""A run that goes on from a checkpoint ends as one that nobody disturbed, on this disk and on another."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from drone.sandbox import choose
from drone.workspace import Snapshot, Workspace
from drone.workspace import checkpoint as checkpoint_module
from drone.workspace.caches import CACHES
from drone.workspace.statuses import Statuses, statuses_of
from shared.blobs import digest
from shared.errors import FleetFault, NotFound
from shared.names import new_id
from shared.work_order import Resumed, WorkOrder
from tests.integration.workspace.agent import BRANCH, deliver, does
from tests.support import wait_until
from tests.support.disks import Disk
from tests.support.repositories import CALC, MakeWorkspaces, commit_files, empty_remote, git, push_commit, work_order
from tests.support.sandboxes import shell

SECRET = b"sk-0123456789"
NOTHING = Snapshot("", "", False, None, (), (), True)


def has_secret(content: bytes) -> bool:
    return SECRET in content


@dataclass
class Drone:
    """A drone's workspaces, which live on when its processes die, and the blobs that all drones can fetch."""

    root: Path
    environment: dict[str, str]
    workspaces_in: MakeWorkspaces
    blobs: dict[tuple[str, str], bytes] = field(default_factory=dict)
    sandbox: str = "none"

    def prepare(self, order: WorkOrder) -> Workspace:
        workspaces = self.workspaces_in(self.root, self.environment, choose(self.sandbox, os.environ))
        return workspaces.prepare(order, self.fetch, lambda: None)

    def fetch(self, run_id: str, sha256: str) -> bytes:
        if (run_id, sha256) not in self.blobs:
            raise NotFound("there is no such blob", code="E-BLOB-404")
        return self.blobs[run_id, sha256]

    def other(self) -> Drone:
        """Another machine with the same control plane."""
        return replace(self, root=self.root.with_name(f"{self.root.name}-{new_id()}"))


@dataclass
class Run:
    """One run of an order, with its newest checkpoint."""

    drone: Drone
    order: WorkOrder
    run_id: str = field(default_factory=new_id)
    newest: Snapshot = NOTHING
    bundle: str | None = None

    def __post_init__(self) -> None:
        self.workspace = self.drone.prepare(self.order)
        if self.order.resumed:
            self.workspace.go_back(self.order.resumed, self.drone.fetch)

    def does(self, line: str) -> None:
        does(self.workspace, line)

    def checkpoint(self, agent_commits: bool = True) -> Snapshot:
        self.newest = self.workspace.checkpoint(self.run_id, has_secret=has_secret, agent_commits=agent_commits)
        if self.newest.bundle is not None:
            self.bundle = digest(self.newest.bundle)
            self.drone.blobs[self.run_id, self.bundle] = self.newest.bundle
        return self.newest

    def steps(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.does(line)
            self.checkpoint()

    def resumed(self, **changes: object) -> WorkOrder:
        """The order for the run that goes on from the newest checkpoint."""
        made = self.newest
        facts = {"run_id": self.run_id, "seq": 7, "base": self.workspace.base_commit}
        facts |= {"commit": made.commit, "head": made.head, "bundle": self.bundle, "bundle_run": self.run_id}
        return self.order.model_copy(update={"resumed": Resumed(**{**facts, **changes})})  # type: ignore[arg-type]

    def dies(self) -> None:
        """The process is gone, and with it its lock."""
        self.workspace.close()


@pytest.fixture
def drone(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces) -> Drone:
    return Drone(tmp_path / "drone", drone_git, workspaces_in)


@pytest.fixture
def run(drone: Drone, remote: Path) -> Run:
    return Run(drone, work_order(remote))


def told(run: Run) -> dict[str, object]:
    """A delivery by all that does not depend on the clock."""
    made = deliver(run.workspace)
    commits = [f"{run.workspace.base_commit}..{made.head_commit}"] if run.workspace.base_commit else [made.head_commit]
    log = ("log", "--format=%an <%ae> %s %T", *commits)
    listing = git(run.workspace.session.git_dir, *log) if made.head_commit else ""  # type: ignore[arg-type]
    return {"patch": made.patch, "commits": listing, "files": made.files_changed, "left out": made.left_out}


def seen(run: Run) -> dict[str, object]:
    """What git and a person see in the workspace, without what stays there as it is: ignored files and caches."""
    path = run.workspace.path
    caches = path.with_name("caches")
    caches.write_text("\n".join(CACHES))
    without_caches = ("-c", f"core.excludesFile={caches}")
    names = git(path, *without_caches, "ls-files", "-co", "--exclude-standard", "-z").split("\0")
    there = [path / name for name in sorted({*names} - {""}) if os.path.lexists(path / name)]
    files = {str(file.relative_to(path)): _look(file) for file in there if file.is_symlink() or file.is_file()}
    return {
        "files": files,
        "log": git(path, "log", "--branches", "--format=%H %s"),
        "status": git(path, *without_caches, "status", "--porcelain"),
    }


def _look(file: Path) -> object:
    if file.is_symlink():
        return str(file.readlink())
    return bool(file.stat().st_mode & 0o100), file.read_bytes()


def undisturbed(drone: Drone, remote: Path, lines: Sequence[str], order_id: str) -> dict[str, object]:
    run = Run(drone.other(), work_order(remote, order_id=order_id))
    for line in lines:
        run.does(line)
    return told(run)


def cut_off(drone: Drone, remote: Path, lines: Sequence[str], at: int) -> tuple[Run, object]:
    """A run that dies while it does step `at`, counted from 0, and what was to be seen at its last checkpoint."""
    run = Run(drone, work_order(remote))
    run.steps(lines[:at])
    before = seen(run)
    run.does(lines[at])
    run.does("echo torn > torn; rm -rf calc.py d; git commit -q -a -m torn; mkfifo fifo; git init -q nested; true")
    run.dies()
    return run, before


_NAMES = ("calc.py", "README.md", "a", "b", "d/c", "d/e/f", "d/e/g h", "ü")
_COMMIT = "git add -A && git commit -q -m"

_Edit = Callable[[random.Random, str, str, int], str]

VISIBLE: tuple[_Edit, ...] = (
    lambda pick, one, other, n: f"mkdir -p \"$(dirname '{one}')\"; echo {n} > '{one}'",
    lambda pick, one, other, n: f"mkdir -p \"$(dirname '{one}')\"; echo {n} >> '{one}'",
    lambda pick, one, other, n: f"rm -rf '{one}'",
    lambda pick, one, other, n: f"mkdir -p \"$(dirname '{other}')\"; mv '{one}' '{other}'",
    lambda pick, one, other, n: f"chmod {pick.choice(['+x', '-x', '0444'])} '{one}'",
    lambda pick, one, other, n: f"rm -rf '{one}'; mkdir -p \"$(dirname '{one}')\"; ln -s '{other}' '{one}'",
    lambda pick, one, other, n: f"mkdir -p \"$(dirname '{one}')\"; printf '\\000\\001\\377%s' {n} > '{one}'",
    lambda pick, one, other, n: f"rm -rf '{one}'; mkdir -p '{one}/in/side'; echo {n} > '{one}/in/side/file'",
    lambda pick, one, other, n: f"echo {n} > {n}.cache; mkdir -p __pycache__; echo {n} > __pycache__/{n}",
    lambda pick, one, other, n: f"{_COMMIT} 'Commit {n}'",
    lambda pick, one, other, n: f"git add '{one}' && git commit -q -m 'Part {n}' && git reset -q",
    lambda pick, one, other, n: "git commit -q --amend -m 'Amended' -a",
    lambda pick, one, other, n: f"echo {n} > f.cache; git add -f f.cache && git commit -q -m 'Ignored {n}'",
    lambda pick, one, other, n: f"git rm -q --cached '{one}' && git commit -q -m 'Untracked {n}'",
    lambda pick, one, other, n: "git reset -q --hard HEAD~1",
    lambda pick, one, other, n: f"git mv '{one}' '{one}-{n}'; git reset -q",
    lambda pick, one, other, n: "touch calc.py",
)
"""None of these exposes a file that git ignored before; ignored files are not transferred to another drone."""
IGNORING: tuple[_Edit, ...] = (
    lambda pick, one, other, n: "echo '*.cache' > .gitignore",
    lambda pick, one, other, n: f"echo '/{other}' >> .gitignore",
    lambda pick, one, other, n: "rm -f .gitignore",
    lambda pick, one, other, n: f"echo kept > kept.cache; mv kept.cache kept{n}",
)


def edits(seed: int, count: int, kinds: tuple[_Edit, ...]) -> list[str]:
    """An agent's possible changes to a workspace, as shell lines, of which some fail; the same for the same seed."""
    pick = random.Random(seed)
    lines = [pick.choice(kinds)(pick, pick.choice(_NAMES), pick.choice(_NAMES), number) for number in range(count)]
    return [f"{{ {line}; }} 2>/dev/null; true" for line in lines]


def check_that_it_ends_the_same(drone: Drone, remote: Path, lines: Sequence[str], elsewhere: bool) -> None:
    at = len(lines) // 2
    first, before = cut_off(drone, remote, lines, at)
    second = Run(drone.other() if elsewhere else drone, first.resumed(), newest=first.newest)

    assert second.workspace.fresh == elsewhere
    assert seen(second) == before
    second.steps(lines[at:])
    assert told(second) == undisturbed(drone, remote, lines, first.order.order_id)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["on this disk", "elsewhere"])
@pytest.mark.parametrize(
    ("seed", "count"), [(1, 10), *(pytest.param(seed, 24, marks=pytest.mark.long) for seed in range(100, 160))]
)
def test_any_work_ends_the_same_after_it_was_cut_off(
    drone: Drone, remote: Path, seed: int, count: int, elsewhere: bool
) -> None:
    kinds = VISIBLE if elsewhere else VISIBLE + IGNORING
    check_that_it_ends_the_same(drone, remote, edits(seed, count, kinds), elsewhere)


def test_an_empty_and_a_shallow_repository_with_sha256_objects_go_on_elsewhere_and_in_a_sandbox(
    drone: Drone, tmp_path: Path
) -> None:
    remote = tmp_path / "sha256"
    remote.mkdir()
    git(remote, "init", "-q", "--object-format=sha256", "--initial-branch=main")
    commit_files(remote, CALC)
    commit_files(remote, {"second.txt": "2"})
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{remote}", "shallow")
    lines = ["echo 1 > one; git add one; git commit -q -m First", "echo 2 > two", "echo 3 > three"]

    check_that_it_ends_the_same(replace(drone, sandbox="auto"), tmp_path / "shallow", lines, elsewhere=True)
    check_that_it_ends_the_same(drone.other(), empty_remote(tmp_path / "empty.git"), lines, elsewhere=True)


def test_another_order_in_the_session_finds_no_checkpoints_and_means_a_fresh_workspace(
    run: Run, drone: Drone, remote: Path
) -> None:
    run.steps(["echo 1 > one; echo kept > kept.cache", "echo 2 > two"])
    made = run.newest.commit
    run.does("echo torn > torn")
    run.dies()
    # The work tree is left alone until it is to go back.
    same = drone.prepare(run.resumed())
    assert (same.fresh, (same.path / "torn").exists()) == (False, True)
    same.close()

    second = Run(drone, work_order(remote, session=run.order.session.id))

    session = second.workspace.session
    assert git(session.git_dir, "for-each-ref") == ""
    assert not session.checkpoint_index.exists()
    assert git(session.git_dir, "cat-file", "--batch-check", stdin=made.encode()).endswith("missing")
    assert (second.workspace.path / "kept.cache").exists()
    second.dies()
    again = Run(drone, run.resumed())
    assert (again.workspace.fresh, (again.workspace.path / "one").exists()) == (True, True)


def test_what_a_power_cut_left_is_no_obstacle_and_what_this_disk_lost_comes_out_of_the_bundle(
    run: Run, drone: Drone
) -> None:
    run.steps(["echo 1 > one; git add one; git commit -q -m Mine", "echo 2 > two"])
    run.does("echo torn > torn")
    run.dies()
    git_dir = run.workspace.session.git_dir
    run.workspace.session.checkpoint_index.write_bytes(b"\0" * 100)
    [Path(f"{git_dir}/{name}.lock").touch() for name in ("index", "checkpoint.index", "packed-refs", "HEAD")]
    Path(f"{git_dir}/refs/dronefleet/checkpoint/{run.run_id}.lock").touch()
    for path in [path for path in (git_dir / "objects").glob("??/*") if path.is_file()]:
        path.chmod(0o644)
        path.write_bytes(b"")

    second = Run(drone, run.resumed())
    second.steps(["echo 3 > three"])

    found = sorted(path.name for path in second.workspace.path.iterdir())
    assert found == sorted([*CALC, ".git", "one", "two", "three"])
    assert git(second.workspace.path, "log", "--format=%s").splitlines() == ["Mine", "Begin"]


def test_a_checkpoint_is_new_only_where_something_is_and_has_the_agents_commit_below_it(run: Run) -> None:
    first = run.checkpoint()
    run.does("echo 1 > new.txt")
    second, third = run.checkpoint(), run.checkpoint()
    run.does("rm new.txt")
    fourth = run.checkpoint()

    assert (first.commit, first.changed, first.bundle) == ("", False, None)
    assert (second.changed, second.head, len(second.commit)) == (True, "", 40)
    assert (third.commit, third.changed, third.bundle) == (second.commit, False, None)
    assert (fourth.commit, fourth.changed, fourth.bundle) == ("", True, None)

    run.does("echo 1 > one; git add one; git commit -q -m Mine; echo 2 > two; mkfifo fifo; touch calc.py")
    listing = "find . -printf '%p %T@ %m %i\n' | sort"
    before = does(run.workspace, listing)
    made = run.checkpoint()
    assert does(run.workspace, listing) == before, "nothing was altered"
    git_dir = run.workspace.session.git_dir
    assert git(git_dir, "rev-parse", f"refs/dronefleet/checkpoint/{run.run_id}") == made.commit
    assert git(git_dir, "rev-parse", f"{made.commit}^") == made.head == git(run.workspace.path, "rev-parse", "HEAD")
    assert git(git_dir, "ls-tree", "--name-only", made.commit).split() == [*sorted([*CALC, "one", "two"])]
    # Without a shell, the head of the checkpoint before counts.
    run.does("git add two; git commit -q -m More")
    assert run.checkpoint(agent_commits=False).head == made.head
    assert run.checkpoint().head == git(run.workspace.path, "rev-parse", "HEAD")


def settled(run: Run) -> Statuses:
    """What the file system notes of the work tree, once each later change must show in it."""
    return wait_until(lambda: found if (found := statuses_of(run.workspace.path)) and found.settled else None)


def test_git_is_not_asked_about_a_work_tree_in_which_nothing_was_written(run: Run) -> None:
    index = run.workspace.session.checkpoint_index
    run.does("echo 1 > new; ln -s none link")
    made = run.checkpoint()
    settled(run)
    run.checkpoint()
    index.unlink()
    again = run.checkpoint()

    assert (again.commit, again.changed, index.exists()) == (made.commit, False, False)
    run.does("git add new; git commit -q -m Mine")
    run.does("echo 2 > new")
    assert run.checkpoint().head
    assert git(run.workspace.session.git_dir, "show", f"{run.newest.commit}:new") == "2"


@pytest.mark.parametrize(
    "line",
    [
        "touch -r in/file $TMPDIR/as; echo 2 > in/file; touch -r $TMPDIR/as in/file",
        "cp -p in/file $TMPDIR/file; mv $TMPDIR/file in/file",
        "chmod +x in/file",
        "ln -sfn other in/link",
        "mv in/file in/other",
        "rm in/link",
        "mkdir in/more",
        "rm -r in; echo 1 > in",
    ],
)
def test_each_change_shows_in_what_the_file_system_notes(run: Run, line: str) -> None:
    run.does("mkdir in; echo 1 > in/file; ln -s file in/link")
    before = settled(run)
    run.does("cat in/file; git commit -q --allow-empty -m Mine")
    assert statuses_of(run.workspace.path) == before
    run.does(line)
    assert statuses_of(run.workspace.path) != before


@pytest.mark.parametrize(
    "line",
    [
        f"echo {SECRET.decode()} > key; git add key; git commit -q -m Key; git rm -q key; git commit -q -m Gone",
        f"git commit -q --allow-empty -m {SECRET.decode()}",
    ],
    ids=["in a file", "in a message"],
)
def test_commits_of_the_agent_that_hold_a_secret_are_not_taken(run: Run, tmp_path: Path, line: str) -> None:
    run.does("echo 1 > one; git add one; git commit -q -m Mine")
    mine = run.checkpoint().head
    run.does(f"{line}; echo 2 > two")
    made = run.checkpoint()

    assert made.head == mine
    assert "they contain a known secret" in made.left_out[0]
    assert git(run.workspace.session.git_dir, "show", f"{made.commit}:two") == "2"
    assert SECRET not in unpacked(made.bundle or b"", tmp_path)
    assert run.checkpoint().left_out == made.left_out


def test_a_checkpoint_that_is_too_large_stays_on_this_disk(
    run: Run, drone: Drone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "LARGEST_BUNDLE", 100_000)
    run.does("head -c 200000 /dev/urandom > random")
    made = run.checkpoint()
    run.does("echo 1 > one")
    again = run.checkpoint()
    run.dies()

    assert (made.bundle, again.bundle) == (None, None)
    assert ("stored only on this drone" in made.kept_on_disk[0], made.left_out, made.is_whole) == (True, (), False)
    resumed = Run(drone, run.resumed())
    assert (resumed.workspace.path / "random").stat().st_size == 200_000
    (resumed.workspace.path / "random").unlink()
    assert resumed.checkpoint().bundle is not None


def unpacked(bundle: bytes, tmp_path: Path) -> bytes:
    """All that a bundle holds, objects whole and not compressed."""
    place = empty_remote(tmp_path / f"unpacked-{new_id()}.git")
    (place / "objects/info/alternates").write_text(f"{tmp_path}/calc.git/objects\n")
    git(place, "index-pack", "--stdin", "--fix-thin", stdin=bundle.partition(b"\n\n")[2])
    names = git(place, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return git(place, "cat-file", "--batch", stdin=f"{names}\n".encode()).encode()


def test_a_file_that_is_large_or_has_a_known_secret_is_left_out_and_named_until_it_has_none(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "LARGEST_FILE", 1_000_000)
    run.does(f"echo key={SECRET.decode()} > .env; echo '# {SECRET.decode()}' >> calc.py; truncate -s 2000000 large")
    run.does("echo fine > fine")
    made, again = run.checkpoint(), run.checkpoint()

    git_dir = run.workspace.session.git_dir
    names = git(git_dir, "diff-tree", "--name-only", "-r", run.workspace.base_commit or "", made.commit)
    assert names == "fine"
    assert made.left_out == (
        ".env: it contains a known secret",
        "calc.py: it contains a known secret",
        "large: 2 MB, over the checkpoint limit of 1 MB",
    )
    assert SECRET not in unpacked(made.bundle or b"", tmp_path)
    assert (again.changed, again.left_out) == (False, made.left_out)
    run.does("echo none > .env; git checkout -q calc.py; rm large")
    without = run.checkpoint()
    assert (without.left_out, git(git_dir, "show", f"{without.commit}:.env")) == ((), "none")


def test_a_run_that_goes_on_elsewhere_gives_a_bundle_at_its_first_checkpoint(
    run: Run, drone: Drone, remote: Path
) -> None:
    run.steps(["echo 1 > one"])
    run.dies()
    push_commit(remote, {"later.txt": "later"})

    second = Run(drone.other(), run.resumed())
    made = second.checkpoint(agent_commits=False)
    third = Run(drone.other(), second.resumed(bundle_run=second.run_id))

    assert (made.changed, made.commit) == (True, run.newest.commit)
    assert (third.workspace.path / "one").read_text() == "1\n"
    # A branch that went on does not move the base.
    assert third.workspace.base_commit == run.workspace.base_commit
    assert not (third.workspace.path / "later.txt").exists()


def test_a_run_without_a_change_goes_on_in_place_and_elsewhere_as_the_base(run: Run, drone: Drone) -> None:
    run.does("echo half > half-set-up.cache")
    run.dies()
    # Without a checkpoint, nothing of it stays.
    fresh = Run(drone, run.resumed(), run_id=run.run_id)
    assert (fresh.workspace.fresh, (fresh.workspace.path / "half-set-up.cache").exists()) == (True, False)

    fresh.checkpoint()
    fresh.does("echo kept > kept.cache; echo torn > torn; rm calc.py; git add -A; git commit -q -m torn")
    fresh.dies()

    here, there = Run(drone, fresh.resumed()), Run(drone.other(), fresh.resumed())

    assert (here.workspace.fresh, there.workspace.fresh) == (False, True)
    assert git(here.workspace.path, "status", "--porcelain") == git(there.workspace.path, "status", "--porcelain") == ""
    assert (here.workspace.path / "kept.cache").exists()
    assert not (here.workspace.path / "torn").exists()


REFS_MADE = (
    "git checkout -q -b other; echo 1 > one; git add one; git commit -q -m One",
    "git tag mine; git tag -a -m Noted noted; git branch more; echo 2 > calc.py; git stash -q",
    "git remote add elsewhere /nowhere; git config alias.x status; git checkout -q --detach",
    "git update-ref refs/notes/commits HEAD; git branch -D -q main; git worktree add -q --detach ../../tree || true",
)


def _repository(run: Run) -> dict[str, str]:
    """What the agent's `.git` has, but for the commits that its branch is at."""
    asked = ("symbolic-ref HEAD", "config --local --list", "stash list", "reflog")
    refs = git(run.workspace.path, "for-each-ref", "--format=%(refname)")
    return {"refs": refs, **{words: git(run.workspace.path, *words.split()) for words in asked}}


def test_a_resumed_repository_is_as_the_order_began_with_it_but_for_the_commits_of_its_branch(
    drone: Drone, remote: Path
) -> None:
    git(remote, "tag", "v1")
    first = Run(drone, work_order(remote))
    before = _repository(first)
    first.steps(REFS_MADE)
    first.dies()
    here, there = Run(drone, first.resumed()), Run(drone.other(), first.resumed())
    assert before["refs"].split() == ["refs/heads/main", "refs/remotes/origin/main", "refs/tags/v1"]
    assert _repository(here) == _repository(there) == before
    for resumed in (here, there):
        assert git(resumed.workspace.path, "log", "--format=%s", "main") == "One\nBegin"
        assert git(resumed.workspace.path, "status", "--porcelain") == ""


def _flipped(bundle: bytes) -> bytes:
    at = bundle.index(b"PACK") + 40
    return bundle[:at] + bytes([bundle[at] ^ 1]) + bundle[at + 1 :]


def _evil(run: Run, tmp_path: Path) -> tuple[str, bytes]:
    """A commit that git would refuse in a fetch, and its bundle: a hook in a directory `.git`."""
    evil = tmp_path / "evil"
    git(tmp_path, "clone", "-q", str(tmp_path / "calc.git"), str(evil))
    hook = git(evil, "hash-object", "-w", "--stdin", stdin=b"#!/bin/sh\n")
    inner = git(evil, "mktree", stdin=f"100755 blob {hook}\tpost-checkout\n".encode())
    tree = git(evil, "mktree", stdin=f"040000 tree {inner}\t.git\n".encode())
    commit = git(evil, "commit-tree", tree, "-p", "HEAD", "-m", "Checkpoint")
    git(evil, "update-ref", "refs/heads/evil", commit)
    git(evil, "bundle", "create", "-q", str(tmp_path / "evil.bundle"), "evil", "^origin/main")
    return commit, (tmp_path / "evil.bundle").read_bytes()


def test_a_bundle_that_is_broken_absent_evil_or_holds_something_else_is_refused(
    run: Run, drone: Drone, tmp_path: Path
) -> None:
    run.steps(["echo 1 > one; git add one; git commit -q -m Mine; head -c 3000 /dev/urandom > random"])
    run.dies()
    whole, (evil, evil_bundle) = run.newest.bundle or b"", _evil(run, tmp_path)
    orders = [run.resumed(bundle=None), run.resumed(bundle="f" * 64), run.resumed(head="")]
    for number, broken in enumerate([whole[:-30], _flipped(whole), b"", b"# v2 git bundle\n\n", SECRET]):
        drone.blobs[run.run_id, f"broken-{number}"] = broken
        orders.append(run.resumed(bundle=f"broken-{number}"))
    drone.blobs[run.run_id, "evil"] = evil_bundle
    for order in (*orders, run.resumed(commit=evil, bundle="evil")):
        with pytest.raises(FleetFault) as fault:
            Run(drone.other(), order)
        assert fault.value.code == "E-CHECKPOINT"
    assert "hasDotgit" in fault.value.why
    # A workspace that could not be put back is laid out anew by the next run.
    here = drone.prepare(run.resumed())
    resumed = run.resumed(head="1" * 40, bundle=None).resumed
    assert resumed is not None
    with pytest.raises(FleetFault, match="is unavailable"):
        here.go_back(resumed, drone.fetch)
    here.close()
    again = Run(drone, run.resumed())
    assert (again.workspace.fresh, (again.workspace.path / "one").exists()) == (True, True)


def test_after_the_agent_removed_everything_the_run_goes_on_as_it_would_have_ended(drone: Drone, remote: Path) -> None:
    damage = "rm -rf ./* .git .gitignore"
    lines = [f"echo 1 > one; git add one; git commit -q -m Mine; {damage}", "echo 2 > two", "echo 3 > three"]
    first = Run(drone, work_order(remote))
    first.steps(lines[:2])
    first.dies()

    second = Run(drone.other(), first.resumed())
    second.steps(lines[2:])

    assert told(second) == undisturbed(drone, remote, lines, first.order.order_id)


def test_hostile_configuration_hooks_and_filters_are_not_executed(drone: Drone, remote: Path, tmp_path: Path) -> None:
    """Outside the sandbox, where the trap can write."""
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung-$1\ncat\n")
    trap.chmod(0o755)
    hostile = f"""
        for name in core.fsmonitor core.sshCommand core.pager filter.evil.clean filter.evil.smudge \
            filter.evil.process diff.evil.command diff.evil.textconv core.editor gpg.program \
            core.alternateRefsCommand uploadpack.packObjectsHook; do
            git config "$name" "{trap} $name"
        done
        git config core.hooksPath {tmp_path}; git config commit.gpgSign true; git config core.worktree /
        echo '* filter=evil diff=evil' > .gitattributes
        mkdir -p .git/hooks
        for hook in pre-commit post-checkout reference-transaction post-index-change pre-push; do
            cp {trap} .git/hooks/$hook; done
        git init -q inner; (cd inner; git config core.fsmonitor "{trap} inner"; echo 1 > a)
        printf '[submodule "inner"]\\n path = inner\\n url = ext::{trap}\\n' > .gitmodules
        echo new > new.txt
    """
    run = Run(replace(drone, sandbox="auto"), work_order(remote))
    workspace = run.workspace
    for_agent = workspace.sandbox.for_session(scratch=workspace.session.scratch, read_only=[trap])
    result = shell(for_agent, workspace.path, hostile)
    assert result.return_code == 0, result.output
    [path.unlink() for path in tmp_path.glob("sprung-*")]

    made = run.checkpoint()
    delivery, pushed = deliver(workspace), workspace.push(BRANCH, None, 60)
    run.dies()
    again = Run(run.drone, run.resumed())

    assert list(tmp_path.glob("sprung-*")) == []
    assert (pushed.pushed, delivery.files_changed) == (True, 3)
    assert (again.workspace.path / "new.txt").exists()
    assert not (again.workspace.path / "inner").exists()
    assert made.left_out == ("inner/: a nested git repository",)


def test_a_link_in_place_of_the_workspace_is_not_followed_and_special_files_go_when_it_goes_back(
    run: Run, drone: Drone, tmp_path: Path
) -> None:
    run.steps(["mkdir d; echo 1 > d/one"])
    run.does("mkfifo fifo d/fifo; git init -q nested; echo 1 > nested/a; git init -q d; rm calc.py; mkfifo calc.py")
    run.dies()
    again = Run(drone, run.resumed(), run_id=run.run_id)
    path = again.workspace.path
    assert sorted(p.name for p in path.iterdir()) == sorted([*CALC, ".git", "d"])
    assert [p.name for p in (path / "d").iterdir()] == ["one"]
    assert (path / "calc.py").is_file()

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/private").write_text("private")
    again.does(f"cd ..; rm -rf work; ln -s {tmp_path}/elsewhere work")
    made = again.checkpoint()
    again.dies()
    path = Run(drone, again.resumed()).workspace.path
    assert git(again.workspace.session.git_dir, "ls-tree", "--name-only", made.commit) == ""
    assert [p.name for p in path.iterdir()] == [".git"]
    assert (tmp_path / "elsewhere/private").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read and write everything")
def test_files_and_directories_without_rights_are_left_out_and_put_back(run: Run, drone: Drone) -> None:
    run.steps(["echo s > secret; chmod 0 secret; mkdir d; echo 1 > d/one; echo 2 > two; chmod 0444 two"])
    left_out = run.newest.left_out
    run.does("echo torn > d/torn; rm d/one; chmod 0500 d; mkdir dark; echo 1 > dark/a; chmod 0 dark; echo 3 >> calc.py")
    run.dies()

    path = Run(drone, run.resumed()).workspace.path

    assert left_out == ("secret: cannot be read",)
    assert [p.name for p in (path / "d").iterdir()] == ["one"]
    assert sorted(p.name for p in path.iterdir()) == sorted([*CALC, ".git", "d", "two"])


def test_a_base_that_was_pushed_away_is_still_gone_on_from_and_here_also_one_that_the_remote_has_lost(
    run: Run, drone: Drone, remote: Path
) -> None:
    run.steps(["echo 1 > one"])
    run.dies()
    tree = git(remote, "rev-parse", "main^{tree}")
    git(remote, "update-ref", "refs/heads/main", git(remote, "commit-tree", tree, "-m", "Anew"))

    second = Run(drone.other(), run.resumed())
    second.steps(["echo 2 > two"])
    made = deliver(second.workspace)

    assert second.workspace.base_commit == run.workspace.base_commit
    assert made.files_changed == 2
    # Whoever has what the remote has now can take the bundle.
    (remote / "work.bundle").write_bytes(made.bundle or b"")
    git(remote.parent, "clone", "-q", f"file://{remote}", "clone")
    git(remote.parent / "clone", "fetch", "-q", str(remote / "work.bundle"), f"{BRANCH}:taken")

    git(remote, "reflog", "expire", "--expire=now", "--all")
    git(remote, "gc", "-q", "--prune=now")
    here = Run(drone, run.resumed())
    with pytest.raises(FleetFault) as fault:
        Run(drone.other(), run.resumed())
    assert (here.workspace.path / "one").exists()
    assert fault.value.code == "E-CHECKPOINT"
    assert (run.workspace.base_commit or "")[:12] in fault.value.what


def test_a_full_disk_is_said_and_the_next_checkpoint_has_everything(
    small_disk: Disk, drone: Drone, remote: Path
) -> None:
    run = Run(replace(drone, root=small_disk.path / "drone"), work_order(remote))
    run.checkpoint()
    run.does("head -c 900000 /dev/urandom > random")
    small_disk.fill()

    with pytest.raises(FleetFault) as fault:
        run.checkpoint()
    small_disk.clear()
    made = run.checkpoint()

    assert fault.value.code == "E-DISK-FULL"
    assert git(run.workspace.session.git_dir, "cat-file", "-s", f"{made.commit}:random") == "900000"
