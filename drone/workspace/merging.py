"""Merges other work into the base of an order, that of other orders or of a branch, before there is a workspace.

A merge commit depends only on what is merged and on the order, so that every drone makes the same one. Conflicts are
committed with git's markers in the files; the agent resolves them, and its work fails verification while one is left.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime

from drone.workspace.authorship import AUTHOR_EMAIL, AUTHOR_NAME
from drone.workspace.git import Git, GitFailed
from shared.errors import OrderError

_MARKERS = "^(<<<<<<<|>>>>>>>) "
_CONFLICTS = 1
"""git's exit code if a merge has conflicts."""
_LISTED = 20
"""Files with conflicts that a note names."""


@dataclass(frozen=True)
class Merge:
    """The result of merging the work of one order, or of a branch."""

    source: str
    """`order ID` or `branch NAME`."""
    commit: str
    """What there is now: a merge commit, or one of the two sides if it contains the other."""
    conflicts: tuple[str, ...] = ()
    """Files with conflicts; bytes of their names that are no text are lone surrogates."""


def merge(git: Git, base: str, theirs: str, source: str, at: datetime) -> Merge:
    """Merge `theirs`, the work of `source`, into `base`; both are in the repository of `git`.

    `at` is the time of the merge commit. Raises OrderError if the two have no common history.
    """
    if git.is_ancestor(theirs, base):
        return Merge(source, base)
    if git.is_ancestor(base, theirs):
        return Merge(source, theirs)
    tree, conflicts = _merged_tree(git, base, theirs, source)
    named = {"NAME": AUTHOR_NAME, "EMAIL": AUTHOR_EMAIL, "DATE": at.isoformat()}
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in named.items()}
    subject = f"Merge {source}{', with conflicts' if conflicts else ''}"
    commit = git.adding(who).text("commit-tree", tree, "-p", base, "-p", theirs, "-m", subject)
    return Merge(source, commit, conflicts)


def can_merge(git: Git, base: str, theirs: str) -> bool:
    """Whether two commits can be merged without conflicts; both are in the repository of `git`. Raises as `merge`."""
    return not _merged_tree(git, base, theirs, "a branch")[1]


def _merged_tree(git: Git, base: str, theirs: str, source: str) -> tuple[str, tuple[str, ...]]:
    """The merged tree, and the files in it that have conflicts."""
    options = ("--write-tree", "-z", "--name-only", "--no-messages")
    try:
        printed = git.raw("merge-tree", *options, base, theirs, codes=(0, _CONFLICTS))
    except GitFailed as failure:
        if "unrelated histories" not in failure.message:
            raise
        raise OrderError(
            f"the work of {source} cannot be merged: it has no history in common with what it is merged into",
            code="E-MERGE-UNRELATED",
            next="fleet submit PROMPT --project SLUG    without --after",
        ) from failure
    tree, *files = printed.decode(errors="surrogateescape").split("\0")
    return tree, tuple(dict.fromkeys(filter(None, files)))


def has_conflicts(merges: tuple[Merge, ...]) -> bool:
    return any(merge.conflicts for merge in merges)


def note_for_model(merges: tuple[Merge, ...]) -> str:
    """What the agent must know: nothing if there were no conflicts."""
    files = [_shown(name) for name in _conflicts(merges)]
    if not files:
        return ""
    listed = "".join(f"\n- {name}" for name in files[:_LISTED])
    more = f"\n- and {len(files) - _LISTED} more" if len(files) > _LISTED else ""
    sources = " and ".join(merge.source for merge in merges if merge.conflicts)
    return (
        f"The workspace starts from merged work, and merging {sources} caused conflicts. "
        "They are committed with git's conflict markers in these files. Resolve them first, so that the intentions of "
        f"both sides are kept, and remove the markers:{listed}{more}"
    )


def note_for_users(merges: tuple[Merge, ...]) -> str:
    """The same for the order's page; empty if nothing was merged."""
    if not merges:
        return ""
    what = f"Merged the work of {' and '.join(merge.source for merge in merges)} into the base"
    files = [_shown(name) for name in _conflicts(merges)]
    shown = ", ".join(files[:_LISTED]) + (f" and {len(files) - _LISTED} more" if len(files) > _LISTED else "")
    return f"{what}; the agent resolves the conflicts in {shown}." if files else f"{what}, without conflicts."


def marker_check(merges: tuple[Merge, ...]) -> str | None:
    """A shell command that fails while conflict markers are left; None if there were no conflicts."""
    files = " ".join(map(_quoted, _conflicts(merges)))
    # What is found decides: the exit code of grep is that of an error if one of the files no longer exists.
    return f"! grep -sE '{_MARKERS}' -- {files} | grep ." if files else None


def _quoted(name: str) -> str:
    """The name for a shell, as text that can be recorded: bytes that are no text are escaped."""
    if name == _shown(name):
        return shlex.quote(name)
    octal = "".join(f"\\0{byte:03o}" for byte in name.encode(errors="surrogateescape"))
    return f"\"$(printf %b '{octal}')\""


def _shown(name: str) -> str:
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _conflicts(merges: tuple[Merge, ...]) -> list[str]:
    return list(dict.fromkeys(name for merge in merges for name in merge.conflicts))
