"""Reads commits in the drone's own git directories. Never used on a workspace's `.git`, which is the agent's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from git import Repo
from git.exc import BadName, GitCommandError, ODBError
from git.objects import Blob, Commit

_MISSING = (BadName, ODBError, ValueError, KeyError, GitCommandError)


class History:
    """Commits and files of one bare repository, or of the drone's git directory of a session."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._repo = Repo(directory)
        self._repo.git.update_environment(**environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        # Ends the `cat-file` helpers, which a receipt would otherwise count as processes of the run.
        self._repo.close()

    def has(self, commit: str) -> bool:
        """Whether this is a commit that is here, with its tree."""
        return self._commit(commit) is not None

    def tree(self, commit: str) -> str:
        found = self._commit(commit)
        if found is None:
            raise ValueError(f"{commit} is not a commit of {self._repo.git_dir}")
        return found.tree.hexsha

    def is_ancestor(self, older: str, newer: str) -> bool:
        return bool(self._repo.is_ancestor(self._repo.commit(older), self._repo.commit(newer)))

    def file(self, commit: str, name: str, limit: int) -> str | None:
        """The first `limit` bytes of a file as text; None if the commit has no such file."""
        found = self._commit(commit)
        if found is None or name not in found.tree:
            return None
        item = found.tree[name]
        if not isinstance(item, Blob):
            return None
        content: bytes = item.data_stream.read(limit)
        return content.decode(errors="replace")

    def _commit(self, name: str) -> Commit | None:
        try:
            commit = self._repo.commit(name)
            commit.tree.size  # noqa: B018 - a commit without its tree is of no use
        except _MISSING:
            return None
        return commit
