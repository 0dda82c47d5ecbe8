"""The changed files as a tree of folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from control_plane.core.patches.patch import FilePatch
from control_plane.web.diffs.labels import section_id, shown_path

MOST = 100
"""Files that the tree names; a filter finds the others."""
NODES_PER_FILE = 6


@dataclass(frozen=True)
class TreeFile:
    """A changed file in the tree."""

    name: str
    file: FilePatch
    is_viewed: bool
    comments: int

    @property
    def id(self) -> str:
        """Of its part of the page."""
        return section_id(self.file)


@dataclass(frozen=True)
class Folder:
    """Neighbouring files of one folder."""

    path: str
    """Empty for the top."""
    files: Sequence[TreeFile]


def tree_of(files: Sequence[FilePatch], viewed: frozenset[str], comments: Mapping[int, int]) -> list[Folder]:
    """The folders of the first files, in the order of the patch."""
    return [
        Folder(
            shown_path(path),
            [
                TreeFile(
                    shown_path(file.path.rpartition("/")[2]),
                    file,
                    file.digest in viewed,
                    comments.get(file.index, 0),
                )
                for file in inside
            ],
        )
        for path, inside in groupby(files[:MOST], key=lambda file: file.path.rpartition("/")[0])
    ]
