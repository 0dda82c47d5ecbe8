"""Reads commits in the drone's own git directories. Never used on a workspace's `.git`, which is the agent's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Self

_LARGEST = 4 * 1024 * 1024


class History:
    """Commits and files of one bare repository, or of the drone's git directory of a session.

    By GitPython's commands and not its objects, which know SHA-1 only.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        # Here, since importing GitPython takes 0.2 s and fails where git is not installed; a run's process is forked
        # from one that has imported it.
        from git import Repo

        self._repo = Repo(directory)
        self._repo.git.update_environment(**environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._repo.close()

    def has(self, commit: str) -> bool:
        """Whether this is a commit that is here, with its tree."""
        return self._succeeds("cat-file", "-e", f"{commit}^{{commit}}^{{tree}}")

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self._succeeds("merge-base", "--is-ancestor", older, newer)

    def file(self, commit: str, name: str, limit: int) -> str | None:
        """The first `limit` bytes of a file as text; None if the commit has no such file, or one of many megabytes."""
        entry = str(self._repo.git.execute(["git", "ls-tree", "--long", commit, "--", name])).split()
        if len(entry) < 4 or not entry[0].startswith("100") or int(entry[3]) > _LARGEST:
            return None
        content = self._repo.git.execute(["git", "cat-file", "blob", entry[2]], stdout_as_string=False)
        return bytes(content)[:limit].decode(errors="replace")

    def export(self, commit: str, folder: str, into: Path, limit: int) -> list[str]:
        """Write the plain files below `folder` of a commit below `into`, which is made anew; returns what was left out.

        Left out are links, submodules, files over `limit` bytes, and names that would lead out of `into`.
        """
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        listing = self._repo.git.execute(["git", "ls-tree", "-r", "-z", "--long", commit, "--", f"{folder}/"])
        return [name for name in map(partial(self._export, folder, into, limit), _entries(str(listing))) if name]

    def _export(self, folder: str, into: Path, limit: int, entry: tuple[str, str, str, str]) -> str:
        """Write one file; returns its name if it was left out, else nothing."""
        mode, blob, size, name = entry
        inside = PurePosixPath(name).relative_to(folder)
        if not mode.startswith("100") or ".." in inside.parts or int(size) > limit:
            return name
        content = self._repo.git.execute(
            ["git", "cat-file", "blob", blob], stdout_as_string=False, strip_newline_in_stdout=False
        )
        target = into / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bytes(content))
        return ""

    def _succeeds(self, *arguments: str) -> bool:
        from git.exc import GitCommandError

        try:
            self._repo.git.execute(["git", *arguments])
        except GitCommandError:
            return False
        return True


def _entries(listing: str) -> Iterator[tuple[str, str, str, str]]:
    """Mode, id, size and name of each line of `git ls-tree -z --long`."""
    for line in filter(None, listing.split("\0")):
        facts, _, name = line.partition("\t")
        mode, _, blob, size = facts.split()
        yield mode, blob, size, name
