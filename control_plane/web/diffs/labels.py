"""What changed about a file besides its lines, in words."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from control_plane.core.patches.patch import SUBMODULE, SYMLINK, FilePatch
from shared.visible_text import visible

EXECUTABLE = "100755"
_TYPES = {SYMLINK: "symlink", SUBMODULE: "submodule"}


def labels_of(file: FilePatch) -> Iterator[str]:
    """Short notes for the head of a file."""
    if file.kind in {"added", "deleted"}:
        yield file.kind
    elif file.kind in {"renamed", "copied"}:
        how = f" ({file.similarity} the same)" if file.similarity not in {"", "100%"} else ""
        yield f"{file.kind} from {shown_path(file.old_path)}{how}"
    if kind := _TYPES.get(file.mode):
        yield kind
    if file.changed_mode:
        yield _mode_change(file)
    elif file.kind == "added" and file.mode == EXECUTABLE:
        yield "executable"
    if file.is_binary:
        yield f"binary{_sizes(file)}"
    elif file.has_crlf:
        yield "CRLF line ends"


def shown_path(path: str) -> str:
    """The path on one line, with nothing hidden."""
    return visible(path.replace("\n", "␊"))


def path_key(path: str) -> str:
    """A short name for a path, for addresses and for the subjects of drafts."""
    return sha256(path.encode("utf-8", "replace")).hexdigest()[:8]


def section_id(file: FilePatch) -> str:
    """The id of a file's part of the page, which it keeps when another file comes before it.

    A file that became a symlink is in the patch twice: as it was deleted, and as it was added.
    """
    return f"file-{path_key(file.path)}{'-old' if file.kind == 'deleted' else ''}"


def _mode_change(file: FilePatch) -> str:
    old, new = file.old_mode, file.new_mode
    if {old, new} == {"100644", EXECUTABLE}:
        return "now executable" if new == EXECUTABLE else "no longer executable"
    return f"mode {old} → {new}"


def _sizes(file: FilePatch) -> str:
    old, new = file.sizes.old, file.sizes.new
    if new is None:
        return ""
    if file.kind == "deleted":
        return f", {_size(old or 0)}"
    return f", {_size(new)}" if file.kind == "added" or old is None else f", {_size(old)} → {_size(new)}"


def _size(count: int) -> str:
    if count < 10_000:
        return f"{count:,} bytes"
    return f"{count / 1000:,.0f} kB" if count < 10_000_000 else f"{count / 1_000_000:,.0f} MB"
