"""The changed files by directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from control_plane.patches.patch import FilePatch
from control_plane.web.diffs.labels import shown_path

MOST = 200
"""Files that the tree names."""


@dataclass(frozen=True)
class Directory:
    """Neighbouring files of one directory."""

    path: str
    """Empty for the top."""
    files: Sequence[tuple[str, FilePatch]]
    """Each with its name in the directory."""


def tree_of(files: Sequence[FilePatch]) -> list[Directory]:
    """The directories of the first files, in the order of the patch."""
    return [
        Directory(shown_path(path), [(shown_path(file.path.rpartition("/")[2]), file) for file in inside])
        for path, inside in groupby(files[:MOST], key=lambda file: file.path.rpartition("/")[0])
    ]
