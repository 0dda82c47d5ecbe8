"""What a run changed, as patches: against what it started from, and against what its branch left the project's at."""

from __future__ import annotations

from dataclasses import dataclass

from drone.workspace.git import Git, GitFailed

DIFF = ("diff-tree", "-r", "--no-renames", "--ignore-submodules=dirty")
_PLAIN = ("-p", "--no-ext-diff", "--no-textconv", "--no-color")
READABLE = (*DIFF, *_PLAIN)
"""For readers: without the content of binary files."""
COMPLETE = (*_PLAIN, "--binary", "--full-index")
"""After `DIFF`: applies with `git apply`."""


@dataclass(frozen=True)
class Patches:
    """The changes so far, for readers."""

    turn: bytes
    """Against what the run started from."""
    branch: bytes | None
    """What a pull request would show; None: the same as `turn`."""


def branch_base(git: Git, published: str | None, base: str | None, head: str | None) -> str | None:
    """The commit at which the branch of `head` left the project's branch, whose tip is `published`.

    As at code hosts, it is the newest commit that both have. None if that is `base`, or if they have none in common.
    """
    if published is None or base is None or head is None or published == base:
        return None
    try:
        found = git.text("merge-base", published, head)
    except GitFailed as failure:
        if failure.code is None:
            raise
        return None
    return None if found == base else found
