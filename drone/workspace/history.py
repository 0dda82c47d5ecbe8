"""Reads commits and single files of the drone's own repositories, without starting git for each of them.

Never used on a workspace's `.git`, which belongs to the agent. For what GitPython is used here, and for what not, see
docs/decisions/0007-gitpython.md.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import TYPE_CHECKING, Self, TypeVar, cast

from drone.workspace.git import Git, GitFailed

if TYPE_CHECKING:
    from git import Repo

T = TypeVar("T")
_LARGEST = 4 * 1024 * 1024
_SHA256_DIGITS = 64
_NO_SIZE = "BAD"
"""What `git ls-tree` writes as the size of a file that is missing or damaged."""
_SECONDS = 60.0
"""Limit for one answer: everything is already on this disk."""
_NO_OBJECT = b"0" * 40
"""A name that no object has."""
_KIND_OF_MODE, _PLAIN, _LINK, _DIRECTORY = 0o170000, 0o100000, 0o120000, 0o040000


@dataclass(frozen=True)
class Entry:
    """A name in a commit's tree."""

    mode: int
    blob: str
    size: int
    """Bytes; 0 if it is not a file."""

    @property
    def is_plain_file(self) -> bool:
        """Not a link, a directory or a submodule."""
        return self.mode & _KIND_OF_MODE == _PLAIN

    @property
    def is_directory(self) -> bool:
        return self.mode & _KIND_OF_MODE == _DIRECTORY

    @property
    def is_link(self) -> bool:
        return self.mode & _KIND_OF_MODE == _LINK

    def flaw(self, limit: int) -> str:
        """Why it is not read, as what follows its name (`is a link, not a file`); '' for a plain file of up to `limit`
        bytes.
        """
        if self.is_plain_file:
            return f"has {self.size:,} bytes; the maximum is {limit:,}" if self.size > limit else ""
        return f"is {'a link' if self.is_link else 'a directory or a submodule'}, not a file"


class History:
    """Commits and files of one of the drone's repositories. Not thread-safe.

    The first request opens the repository: two git processes that answer until `close`; a later request opens it
    again. GitPython supports only SHA-1: in a repository with SHA-256 each request is a git command.

    Raises GitFailed if git fails, gives no answer in a minute, or cannot read an object: it is missing, or a power cut
    left it empty or truncated.
    """

    def __init__(self, git: Git) -> None:
        """`git` has the repository's directory, and the environment for all processes."""
        self._git = git.adding({"GIT_LITERAL_PATHSPECS": "1"})
        self._repo: Repo | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._too_slow = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End git's processes."""
        if self._repo is not None:
            self._repo.close()
        self._repo = None
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes = []

    def has(self, commit: str) -> bool:
        """Whether this commit is here, with its tree."""
        if len(commit) == _SHA256_DIGITS:
            return self._git.has(commit)
        try:
            return self._asked(lambda repo: repo.git.get_object_header(f"{commit}^{{commit}}^{{tree}}")) is not None
        except GitFailed:
            if self._too_slow:
                raise
            # Git exits at an object that a power cut left empty. A separate command reports that it cannot be read.
            return self._git.has(commit)

    def tree_of(self, commit: str) -> str:
        """The id of a commit's tree."""
        if len(commit) == _SHA256_DIGITS:
            return self._git.text("rev-parse", f"{commit}^{{tree}}")
        found = self._asked(lambda repo: repo.git.get_object_header(f"{commit}^{{tree}}"))
        if found is None:
            raise _unreadable(commit)
        # GitPython declares text, but returns the bytes that git wrote.
        return cast("bytes", found[0]).decode()

    def entry(self, commit: str, path: str) -> Entry | None:
        """The entry of a commit at a path; None if there is none."""
        if len(commit) == _SHA256_DIGITS:
            listing = self._git.raw("ls-tree", "-z", "--long", commit, "--", path).decode(errors="replace")
            return next((entry for name, entry in _listed(listing) if Path(name) == Path(path)), None)
        try:
            found = self._asked(lambda repo: _entry(repo, commit, path))
        except KeyError:
            return None
        if found is None:
            raise _unreadable(f"{commit}:{path}")
        return found

    def kind_and_size(self, name: str) -> tuple[str, int]:
        """An object's kind (`blob`, `tree`, `commit` or `tag`) and size in bytes, by its id, without its content."""
        if len(name) == _SHA256_DIGITS:
            return self._git.text("cat-file", "-t", name), int(self._git.text("cat-file", "-s", name))
        found = self._asked(lambda repo: repo.git.get_object_header(name))
        if found is None:
            raise _unreadable(name)
        # GitPython declares text, but returns the bytes that git wrote.
        kind, size = cast("bytes", found[1]), found[2]
        return kind.decode(), size

    def content(self, name: str) -> bytes:
        """The content of an object, by its id."""
        if len(name) == _SHA256_DIGITS:
            return self._git.raw("cat-file", "blob", name)
        found = self._asked(lambda repo: _content(repo, name))
        if found is None:
            raise _unreadable(name)
        return found

    def file(self, commit: str, path: str, limit: int) -> bytes | None:
        """The first `limit` bytes of a file; None if the commit has nothing at the path.

        Raises ValueError, whose text follows the path, for what is no plain file or has many megabytes.
        """
        entry = self.entry(commit, path)
        if entry is None:
            return None
        if flaw := entry.flaw(_LARGEST):
            raise ValueError(flaw)
        return self.content(entry.blob)[:limit]

    def export(self, commit: str, folder: str, into: Path, limit: int) -> dict[str, str]:
        """Write the plain files below `folder` of a commit to `into`, which is recreated.

        Links, submodules, files over `limit` bytes, and names that would lead out of `into` are left out: returned are
        their paths, each with the reason as what follows it. So is `folder` itself, if it is no directory.
        """
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        top = self.entry(commit, folder)
        if top is None:
            return {}
        if not top.is_directory:
            return {folder: f"is {'a link' if top.is_link else 'a file or a submodule'}, not a directory"}
        left_out = {}
        listing = self._git.raw("ls-tree", "-r", "-z", "--long", commit, "--", f"{folder}/")
        for name, entry in _listed(listing.decode(errors="surrogateescape")):
            inside = PurePosixPath(name).relative_to(folder)
            flaw = "leads out of its directory" if ".." in inside.parts else entry.flaw(limit)
            if flaw:
                left_out[name] = flaw
                continue
            target = into / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.content(entry.blob))
        return left_out

    def _asked(self, question: Callable[[Repo], T]) -> T | None:
        """GitPython's answer; None if an object cannot be read. A process that died is restarted once.

        Errors in the answer while git is alive are raised here: KeyError means that a tree has no such name.
        """
        for _ in range(2):
            repo = self._opened()
            try:
                with self._bounded():
                    return question(repo)
            except (ValueError, IndexError):
                # GitPython has the same error for a missing object and for a dead process, and another one for a
                # commit that arrived only in part.
                if self._all_alive():
                    return None
            except (KeyError, OSError):
                if self._all_alive():
                    raise
            self.close()
        raise GitFailed("cat-file", None, "took too long" if self._too_slow else "git exited at a damaged object")

    def _opened(self) -> Repo:
        if self._repo is None:
            # Here, since importing GitPython takes 0.2 s and fails if git is not installed; a run's process is
            # forked from one that has imported it.
            from git import Repo

            repo = Repo(self._git.directory)
            # Started here and not by GitPython, which would give them the environment of this process.
            header, content = (self._git.conversation("cat-file", how) for how in ("--batch-check", "--batch"))
            repo.git.cat_file_header = repo.git.AutoInterrupt(header, header.args)
            repo.git.cat_file_all = repo.git.AutoInterrupt(content, content.args)
            self._repo, self._processes, self._too_slow = repo, [header, content], False
        return self._repo

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        timer = Timer(_SECONDS, self._kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _kill(self) -> None:
        self._too_slow = True
        for process in self._processes:
            process.kill()

    def _all_alive(self) -> bool:
        """Whether each process answers a question; one that met a damaged object has left half an answer, or none."""
        try:
            with self._bounded():
                return all(map(_answers, self._processes))
        except OSError:
            return False


def _answers(process: subprocess.Popen[bytes]) -> bool:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(_NO_OBJECT + b"\n")
    process.stdin.flush()
    return process.stdout.readline() == _NO_OBJECT + b" missing\n"


def _entry(repo: Repo, commit: str, path: str) -> Entry:
    """The entry of the commit at the path. Raises KeyError if there is none."""
    found = repo.commit(commit).tree.join(path)
    is_blob = found.type == "blob"
    return Entry(found.mode, found.hexsha, found.size if is_blob else 0)


def _content(repo: Repo, name: str) -> bytes:
    _, _, size, content = repo.git.get_object_data(name)
    if len(content) != size:
        # Git reports an object's size before it finds that the rest is damaged, and then exits.
        raise ValueError
    return content


def _unreadable(name: str) -> GitFailed:
    return GitFailed("cat-file", None, f"{name} is missing or damaged")


def _listed(listing: str) -> Iterator[tuple[str, Entry]]:
    """Name and entry of each line of `git ls-tree -z --long`. Raises GitFailed for a file that git cannot read."""
    for line in filter(None, listing.split("\0")):
        facts, _, name = line.partition("\t")
        mode, kind, blob, size = facts.split()
        if size == _NO_SIZE:
            raise _unreadable(blob)
        yield name, Entry(int(mode, 8), blob, int(size) if kind == "blob" else 0)
