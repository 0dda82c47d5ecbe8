"""One session's place on disk: the workspace, the drone's own git directory beside it, and a scratch for commands.

sessions/<session>/work      the workspace, the only part that the agent can write besides the scratch
sessions/<session>/git       the drone's git directory: its index, the commits that are delivered, the checkpoints
sessions/<session>/scratch   home and /tmp of the commands, kept from order to order
sessions/<session>/settings  the default branch's settings for drones, copied from its `.dronefleet/`
sessions/<session>/order     the order that was here last
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from drone.sandbox.account import give_tree
from drone.sandbox.entering import descend
from drone.sandbox.trees import remove
from drone.workspace.authorship import AUTHOR_EMAIL, AUTHOR_NAME
from drone.workspace.caches import CACHES, TAGS, caches_in
from drone.workspace.encodings import reading_files
from drone.workspace.git import Git, GitFailed, at_once
from drone.workspace.history import History
from drone.workspace.locks import Busy, FileLock
from drone.workspace.mirror import Mirror
from drone.workspace.staging import refresh, remove_special_files
from drone.workspace.starting_point import StartingPoint
from drone.workspace.submodule_sources import Submodule
from drone.workspace.submodules import empty_submodules
from shared.errors import FleetFault

LOCK_SECONDS = 30.0
LONGEST_PATH = 4096
"""Bytes. git passes whole paths to the system, and Linux takes no longer ones."""
CHECKPOINT_REFS = "refs/dronefleet/checkpoint"
"""Below: a ref for each run since the workspace was laid out, at its newest checkpoint."""
_SPECIAL = re.compile(r"[\\*?\[\]]")
"""In a pattern of git."""


class SessionDirectory:
    """Lays out the workspace of one session, and holds its lock while a run works in it."""

    def __init__(self, directory: Path, git: Git, user: int | None = None) -> None:
        """`user` is the account of the commands, if it is not the drone's own (`Sandbox.user`)."""
        self.directory = directory
        self._user = user
        self.work = directory / "work"
        self.git_dir = directory / "git"
        self.scratch = directory / "scratch"
        self.git = git.at(self.git_dir, self.work)
        self.checkpoint_index = self.git_dir / "checkpoint.index"
        """Exists from the first checkpoint after the workspace was laid out, so also a sign that set-up is done."""
        self.submodules: Sequence[Submodule] = ()
        """Of the order's base, outer ones first. Set before the workspace is laid out or used."""
        self._order_file = directory / "order"
        self._lock: FileLock | None = None
        self._trees: dict[str, str] = {}
        """Of commits, so that git need not be started again to tell."""
        self.history = History(git.at(self.git_dir).uninterrupted())
        """Of the drone's git directory, and so of the mirror that it borrows from; opened by the first request."""

    def take(self, check: Callable[[], None]) -> None:
        """Take the session for this run.

        Raises FleetFault while another run, a late one for example, still works in it.
        """
        lock = FileLock(self.directory / "lock")
        try:
            lock.take(seconds=LOCK_SECONDS, check=check)
        except Busy as error:
            raise FleetFault(
                "the session's workspace is in use by another run on this drone",
                code="E-WORKSPACE-BUSY",
                why=f"waited {LOCK_SECONDS:.0f} s for it to end",
                next="fleet orders --status running",
            ) from error
        # When it was used last decides how long it is kept.
        os.utime(self.directory / "lock")
        self._lock = lock

    def release(self) -> None:
        self.history.close()
        if self._lock:
            self._lock.release()
            self._lock = None

    def lay_out(self, order_id: str, mirror: Mirror, start: StartingPoint) -> None:
        """Make `work` hold exactly the base, plus ignored files that an earlier order of the session left behind.

        A repeated order gets a fresh workspace, and so does an order after one whose workspace cannot be cleaned: a
        cache is never worth a failed order.
        """
        keep = self._can_be_kept(order_id, mirror)
        # Before anything is changed: if this is interrupted, the next attempt of the order finds its own id.
        self._order_file.write_text(order_id)
        if keep:
            try:
                self._renew_git_dir(mirror)
                remove_special_files(self.work)
                empty_submodules(self.git)
                self.fill(start.commit, clean=True)
            except (GitFailed, OSError):
                keep = False
        if not keep:
            self._wipe()
            self._make_git_dir(mirror)
            self.fill(start.commit, clean=False)
        for each in self.submodules:
            if each.mirror is not None:
                self._lay_out_submodule(each, each.mirror)
        self.make_agents_git(mirror, start, start.commit)

    def can_go_on(self, order_id: str, mirror: Mirror, commits: Iterable[str]) -> bool:
        """Whether everything that an earlier run of this order left is here: workspace, checkpoints, these commits."""
        whole = self._is_whole(mirror) and self._borrowed() >= {str(each) for each in self.lenders(mirror)}
        if not (self._order_was() == order_id and whole and self.checkpoint_index.exists()):
            return False
        return all(map(self.history.has, commits))

    def go_on(self) -> None:
        """Use the workspace unchanged. Locks in the git directory are stale: their holders were killed."""
        for lock in [*self.git_dir.glob("*.lock"), *(self.git_dir / "refs").rglob("*.lock")]:
            lock.unlink(missing_ok=True)

    def keep_index(self) -> None:
        """Keep the index for the checkpoints, with its time, which tells git which files may have changed since."""
        draft = self.checkpoint_index.with_name(f"{self.checkpoint_index.name}.new")
        shutil.copy2(self.git_dir / "index", draft)
        draft.replace(self.checkpoint_index)

    def forget_checkpoints(self) -> None:
        """Prevent later runs from continuing in this workspace unchanged."""
        self.checkpoint_index.unlink(missing_ok=True)

    def take_kept_index(self) -> None:
        """Start with what the last checkpoint knew about the files: which are tracked, and which are unchanged."""
        if self.checkpoint_index.exists():
            shutil.copy2(self.checkpoint_index, self.git_dir / "index")

    def _can_be_kept(self, order_id: str, mirror: Mirror) -> bool:
        return self._order_was() not in ("", order_id) and self._is_whole(mirror)

    def _order_was(self) -> str:
        return self._order_file.read_text() if self._order_file.exists() else ""

    def _is_whole(self, mirror: Mirror) -> bool:
        return self.work.is_dir() and not self.work.is_symlink() and str(mirror.objects) in self._borrowed()

    def _borrowed(self) -> set[str]:
        borrowed = self.git_dir / "objects" / "info" / "alternates"
        return set(borrowed.read_text().splitlines()) if borrowed.exists() else set()

    def lenders(self, mirror: Mirror) -> list[Path]:
        """The objects of the mirrors from which the drone's git directory borrows, each once."""
        mirrors = [mirror, *(each.mirror for each in self.submodules if each.mirror is not None)]
        return list(dict.fromkeys(each.objects for each in mirrors))

    def _renew_git_dir(self, mirror: Mirror) -> None:
        """Keep nothing of the previous order except the index, which saves git from reading all files again.

        Its checkpoints are many objects that are never needed again, and git would never remove them automatically.
        """
        self.history.close()
        index = self.directory / "index"
        (self.git_dir / "index").replace(index)
        remove(self.git_dir)
        self._make_git_dir(mirror)
        index.replace(self.git_dir / "index")

    def fill(self, commit: str | None, *, clean: bool) -> None:
        """Make `work` hold the files of a commit, whatever is there now; with `clean` nothing else that git sees."""
        tree = commit or self._empty_tree()
        (self.git_dir / "index.lock").unlink(missing_ok=True)
        reading_files(self.git, "read-tree", "--reset", "-u", tree)
        if clean:
            self._clean()
        if self._user is not None and give_tree(self.work, self._user):
            # Otherwise git takes the files for changed, because of their new owner, and reads all of them each time.
            refresh(self.git)

    def _clean(self) -> None:
        """Remove untracked files, except caches and what git ignores: these take time to make."""
        try:
            # Twice -f: repositories inside the workspace are removed too.
            self.git.text("clean", "-ffdq", *(f"--exclude={pattern}" for pattern in (*CACHES, *self._tagged())))
        except (GitFailed, OSError):
            # A path that is too long for git, a locked directory, or more caches than a command can name. Ignored files
            # in the same directory go, too.
            untracked = self.git.raw("ls-files", "-z", "--others", "--directory", "--exclude-standard")
            for path in filter(None, untracked.split(b"\0")):
                remove(self.work / os.fsdecode(path))

    def _tagged(self) -> Iterator[str]:
        """Patterns for the directories that are caches by their content."""
        tags = self.git.raw("ls-files", "-z", "--others", "--exclude-standard", "--", TAGS).split(b"\0")
        for cache in set(dict(caches_in(self.git, filter(None, tags))).values()):
            yield "/" + _SPECIAL.sub(r"\\\g<0>", os.fsdecode(cache))

    def tree_of(self, commit: str | None) -> str:
        """The id of the commit's tree; of the empty tree if there is no commit."""
        if commit is None:
            return self._empty_tree()
        if commit not in self._trees:
            self._trees[commit] = self.history.tree_of(commit)
        return self._trees[commit]

    def _empty_tree(self) -> str:
        return self.git.uninterrupted().text("hash-object", "-w", "-t", "tree", "--stdin")

    def _wipe(self) -> None:
        self.history.close()
        for directory in (self.work, self.git_dir, self.scratch):
            remove(directory)
        self.work.mkdir(parents=True)

    def _make_git_dir(self, mirror: Mirror) -> None:
        _init(self.git.at(self.git_dir), mirror, "--bare")
        (self.git_dir / "objects" / "info" / "alternates").write_text(
            "".join(f"{each}\n" for each in self.lenders(mirror))
        )
        # Here and not in the environment: a remote on this machine keeps its own hooks when it is pushed to.
        _configure(self.git_dir, {"core.hooksPath": "/dev/null"})

    def make_agents_git(self, mirror: Mirror, start: StartingPoint, head: str | None) -> None:
        """Recreate the agent's `.git`: a clone that borrows the mirror's objects, with its branch at `head`.

        The commits between the base and `head` come from the drone's git directory.
        """
        refs = {f"refs/heads/{start.branch}": head} if head else {}
        git = self._make_clone(mirror, "", refs, f"--initial-branch={start.branch}")
        if head:
            # The index contains what git knows about the files' times: `git status` need not read them all again.
            shutil.copy2(self.git_dir / "index", self.work / ".git" / "index")
            self._hand_over(git, start.commit, head)
        self._give_agents_git()

    def _make_clone(self, mirror: Mirror, path: str, own_refs: Mapping[str, str], *options: str) -> Git:
        """Recreate the `.git` of the agent's work tree or of a submodule in it; return git in it.

        It is a clone with the submodules that were fetched, and with these refs besides those of a clone.
        """
        own = self.work / path / ".git"
        remove(own)
        git = self.git.at(own)
        # Checks belong to the run's own thread.
        refs_of = git.at(mirror.directory).uninterrupted().text
        listing = partial(refs_of, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
        _, refs = at_once(partial(_init, git, mirror, *options), listing)
        lines = [_as_clone(line) for line in refs.split("\n") if line]
        lines += [f"{commit} {name}" for name, commit in own_refs.items()]
        ordered = sorted(lines, key=lambda line: line.partition(" ")[2])
        (own / "packed-refs").write_text("".join(f"{line}\n" for line in ordered))
        settings = {
            "user.name": AUTHOR_NAME,
            "user.email": AUTHOR_EMAIL,
            "gc.auto": "0",
            "maintenance.auto": "false",
            "remote.origin.url": mirror.remote.shown,
            "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        }
        for each in self.submodules:
            if each.mirror is not None and each.around == path:
                name = f"submodule.{each.name}"
                settings |= {f"{name}.url": each.mirror.remote.shown, f"{name}.active": "true"}
        _configure(own, settings)
        return git

    # The submodules

    def submodule_git(self, path: str) -> Git:
        """The drone's git for the work tree of a submodule that was fetched; its index is beside the project's own."""
        index = self.git_dir / f"submodule-{sha256(os.fsencode(path)).hexdigest()[:32]}.index"
        return self.git.at(self.git_dir, self.work / path).adding({"GIT_INDEX_FILE": str(index)})

    def _lay_out_submodule(self, submodule: Submodule, mirror: Mirror) -> None:
        """Check out a submodule with a repository of its own, as `git submodule update --init` does."""
        # A link on the way would lead git elsewhere.
        os.close(descend(self.work, submodule.path.split("/")))
        git, work = self.submodule_git(submodule.path), self.work / submodule.path
        reading_files(git, "read-tree", "--reset", "-u", submodule.commit)
        if self._user is not None and give_tree(work, self._user):
            refresh(git)
        self._make_clone(mirror, submodule.path, {})
        (work / ".git" / "HEAD").write_text(f"{submodule.commit}\n")
        shutil.copy2(git.environment["GIT_INDEX_FILE"], work / ".git" / "index")
        if self._user is not None:
            give_tree(work / ".git", self._user)

    def show_changes_to(self, head: str | None) -> None:
        """Make the agent's `git status` show the changes against `head`; its index keeps its data about the files."""
        if head:
            self.git.at(self.work / ".git").text("read-tree", "--reset", head)
            self._give_agents_git()

    def _give_agents_git(self) -> None:
        if self._user is not None:
            give_tree(self.work / ".git", self._user)

    def _hand_over(self, agents: Git, base: str | None, head: str) -> None:
        """Restore the agent's own commits to its new `.git`."""
        if head == base:
            return
        wanted = f"{head}\n" + (f"^{base}\n" if base else "")
        pack = self.git.at(self.git_dir).raw("pack-objects", "--revs", "--stdout", "-q", stdin=wanted.encode())
        agents.text("index-pack", "--stdin", stdin=pack)


def _init(git: Git, mirror: Mirror, *options: str) -> None:
    """Create a repository that borrows the mirror's objects, and knows where a shallow history ends."""
    directory = git.directory
    if directory is None:
        raise ValueError("a directory to initialize is required")
    git.text("init", "-q", "--template=", f"--object-format={mirror.object_format}", *options)
    borrowed = directory / "objects" / "info" / "alternates"
    borrowed.parent.mkdir(parents=True, exist_ok=True)
    borrowed.write_text(f"{mirror.objects}\n")
    shallow = mirror.directory / "shallow"
    if shallow.exists():
        shutil.copy2(shallow, directory / "shallow")


def _configure(git_dir: Path, settings: Mapping[str, str]) -> None:
    """Set variables in the unchanged configuration of a new repository: `git config` would take a process for each."""
    with (git_dir / "config").open("a", encoding="utf-8", errors="surrogateescape") as file:
        for name, value in settings.items():
            section, _, variable = name.rpartition(".")
            title, _, of = section.partition(".")
            file.write(f"[{title} {_quoted(of)}]\n" if of else f"[{title}]\n")
            file.write(f"\t{variable} = {_quoted(value)}\n")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _as_clone(line: str) -> str:
    """A ref of the mirror under the name that it has in a clone."""
    commit, _, name = line.partition(" ")
    return f"{commit} {name.replace('refs/heads/', 'refs/remotes/origin/', 1)}"
