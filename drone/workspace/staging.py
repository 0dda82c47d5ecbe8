"""The state of a work tree as a git tree, made by the drone's own git; the workspace's `.git` is not read.

What cannot be delivered is left out by name: nested repositories, huge files, files that cannot be read, and
everything that is neither a file nor a link.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from drone.sandbox.entering import enter
from drone.sandbox.trees import walk
from drone.workspace.caches import caches_in
from drone.workspace.conversions import add_in_stored_form, has_bytes_of
from drone.workspace.encodings import add_unencoded, cannot_encode, encodings_of, reading_files
from drone.workspace.git import Git, GitFailed, at_once
from drone.workspace.lfs import LfsFiles
from drone.workspace.submodules import Submodules, compared, remove_from_index, submodules_of

LARGEST_FILE = 100 * 1000 * 1000
"""Bytes; no forge would accept a larger file."""
CACHE = "a cache"
"""The reason why files of a cache are left out."""
SPECIAL = "neither a file nor a link"
_REFUSED = re.compile(rb"Unable to process path (.+)")
_NOT_OPENED = re.compile(rb"^warning: could not open directory '(.+?)(?:/': (.+))?$", re.MULTILINE)
"""A message of more than 4 kB is cut by git: then the path is too long."""
_TRIES = 100
_MOST_SHOWN = 10
_LONGEST_SHOWN = 300
"""Characters of a path."""


@dataclass(frozen=True)
class Parent:
    """What a work tree is staged relative to."""

    commit: str | None
    fetched: tuple[str | None, ...]
    """Commits of the remote, or of earlier work: other LFS pointers are the agent's."""
    also: Set[bytes] = frozenset()
    """Files that are work if they exist, although git may ignore them."""


@dataclass(frozen=True)
class Staged:
    """The tree, and what is not in it, each path with the reason."""

    tree: str
    left_out: Mapping[bytes, str]
    caches: Mapping[bytes, str] = field(default_factory=dict)
    """Left out as well, and no work."""


@dataclass(frozen=True)
class Differences:
    """How a work tree differs from an index."""

    paths: list[bytes]
    """Tracked files that differ or are gone, then untracked files that are not ignored."""
    left_out: dict[bytes, str]
    """What git cannot take, with the reason; the name of a directory ends with a slash."""
    cached: Set[bytes]
    """Files of a cache that the index has."""


def mend_work_tree(work: Path) -> None:
    """Recreate a removed workspace: everything in it counts as deleted. A link in its place is not followed."""
    if work.is_symlink() or work.is_file():
        work.unlink()
    work.mkdir(exist_ok=True)


def stage(
    git: Git,
    parent: Parent,
    known_tree: Callable[[str | None], str | None],
    inside_submodules: Callable[[Submodules], Mapping[bytes, str]],
) -> Staged:
    """Write the work tree as a tree, relative to `parent`: a file that is left out stays as it is there.

    `git` has the drone's git directory and the workspace as its work tree. `known_tree` returns the same tree relative
    to the commit if another index has it, and nothing in it has to be left out. `inside_submodules` returns what is
    left out of the directories of submodules, with the reasons.
    """
    work = git.work_tree
    if work is None:
        raise ValueError("staging requires a work tree")
    left_out = {os.fsencode(path): SPECIAL for path in remove_special_files(work)}
    # The other index may be from before `also`.
    if not parent.also and (tree := known_tree(parent.commit)) is not None:
        return Staged(tree, left_out)
    # Entries that are the same in index and parent keep what the index knows about the file: only the rest is read.
    read_tree(git, parent.commit)
    refresh(git)
    found = compared(git, parent.commit, submodules_of(git))
    remove_from_index(git, found.gone)
    lfs = LfsFiles(git, parent.fetched)
    wanted = []
    differences = differing(git, known=parent.also)
    left_out |= {**inside_submodules(found), **differences.left_out}
    for path in dict.fromkeys([*differences.paths, *(path for path in parent.also if is_file(work, path))]):
        if lfs.is_unchanged(path):
            continue
        reason = why_not(work, path)
        if reason:
            left_out[path] = reason
        else:
            wanted.append(path)
    update_index(git, wanted, left_out)
    caches = {path: reason for path, reason in left_out.items() if reason == CACHE}
    work_left_out = {path: reason for path, reason in left_out.items() if path not in caches}
    return Staged(git.text("write-tree"), work_left_out, caches)


def named(left_out: Mapping[bytes, str]) -> tuple[str, ...]:
    """What is left out, for users; of many paths with the same reason, the first ones."""
    paths: dict[str, list[str]] = {}
    for path, reason in sorted(left_out.items()):
        paths.setdefault(reason, []).append(_short(path.decode(errors="replace")))
    return tuple(sorted(line for reason, found in paths.items() for line in _lines(found, reason)))


def _lines(paths: list[str], reason: str) -> list[str]:
    if len(paths) > _MOST_SHOWN:
        return [f"{', '.join(paths[:_MOST_SHOWN])} and {len(paths) - _MOST_SHOWN:,} more: {reason}"]
    return [f"{path}: {reason}" for path in paths]


def _short(path: str) -> str:
    return path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}… ({len(path):,} characters)"


def remove_special_files(work: Path) -> list[str]:
    """Remove FIFOs, sockets and devices, and return their names.

    A FIFO named `.gitignore` would make git wait for a writer until the time is up.
    """
    removed = []
    for visited in walk(work):
        # Entries know their type from the directory: no call for each of perhaps 200,000 files.
        for entry in visited.entries:
            if not (entry.is_dir(follow_symlinks=False) or entry.is_symlink() or entry.is_file(follow_symlinks=False)):
                with suppress(FileNotFoundError):
                    os.unlink(entry.name, dir_fd=visited.descriptor)
                    removed.append("/".join((*visited.names, entry.name)))
    return removed


def read_tree(git: Git, commit: str | None) -> None:
    """Set the index to a commit; it keeps what it knows about files that are the same there."""
    git.text("read-tree", *(["--reset", commit] if commit else ["--empty"]))


def refresh(git: Git, *options: str) -> None:
    """Update the index's record of which files are unchanged, so that these need not be read again."""
    try:
        reading_files(git, "update-index", "-q", "--ignore-submodules", "--refresh", *options)
    except GitFailed as failure:
        # 1: some files differ, which is expected here.
        if failure.code != 1:
            raise


def differing(git: Git, added: Set[bytes] = frozenset(), known: Set[bytes] = frozenset()) -> Differences:
    """How the work tree differs from the index.

    Only an untracked file belongs to a cache. `added` are untracked files that the index has, and `known` are tracked
    files that it may not have.
    """
    # Two commands: `git status` and `ls-files --modified` would read refs of a repository in a submodule's place.
    changed, (new, left_out) = at_once(partial(_changed, git), partial(_new, git))
    caches = dict(caches_in(git, {*new, *added} - known))
    paths = [*changed, *(path for path in new if path not in caches)]
    return Differences(paths, left_out | dict.fromkeys(caches.values(), CACHE), added & caches.keys())


def _changed(git: Git) -> list[bytes]:
    """Tracked files that differ or are gone. Submodules are not checked: git would run in the agent's directories."""
    options = ("-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
    fields = reading_files(git, "diff-files", *options).split(b"\0")
    changed = []
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        before, now, blob, _, kind = facts.removeprefix(b":").split()
        if kind != b"M" or before != now or not has_bytes_of(git, path, blob.decode()):
            changed.append(path)
    return changed


def _new(git: Git) -> tuple[list[bytes], dict[bytes, str]]:
    """Untracked files that are not ignored, and what git cannot take of such directories."""
    listing, warnings = git.with_warnings("ls-files", "-z", "--others", "--exclude-standard")
    unopened = (found.groups(b"the path is too long") for found in _NOT_OPENED.finditer(warnings))
    left_out = {path + b"/": reason.decode(errors="replace") for path, reason in unopened}
    paths = []
    for path in filter(None, listing.split(b"\0")):
        # A nested repository is one name with a slash at the end.
        if path.endswith(b"/"):
            left_out[path] = "a nested git repository"
        else:
            paths.append(path)
    return paths, left_out


def status_of(work: Path, path: bytes) -> os.stat_result:
    """The status of a path in the work tree, also of one that is too long with `work` in front. Raises OSError."""
    around = enter(work)
    try:
        return os.stat(path, dir_fd=around, follow_symlinks=False)
    finally:
        os.close(around)


def is_file(work: Path, path: bytes) -> bool:
    """Whether there is a file or a link at a path in the work tree."""
    try:
        mode = status_of(work, path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def why_not(work: Path, path: bytes, largest: int = LARGEST_FILE, limit_is: str = "over the limit of") -> str:
    """The reason why a path cannot be taken; empty if it can. `limit_is` introduces the limit of a file's size."""
    try:
        status = status_of(work, path)
    except (FileNotFoundError, NotADirectoryError):
        return ""  # it is gone, and its deletion is delivered
    except OSError as error:
        return error.strerror or "cannot be inspected"
    if stat.S_ISLNK(status.st_mode):
        return ""
    if stat.S_ISDIR(status.st_mode):
        return ""  # in place of a file that is gone; the files in it have their own names
    if not stat.S_ISREG(status.st_mode):
        return SPECIAL
    if status.st_size > largest:
        return f"{status.st_size / 1e6:,.0f} MB, {limit_is} {largest / 1e6:,.0f} MB"
    return "" if _is_readable(work, path) else "cannot be read"


def _is_readable(work: Path, path: bytes) -> bool:
    around = enter(work)
    try:
        return os.access(path, os.R_OK, dir_fd=around)
    finally:
        os.close(around)


def update_index(git: Git, wanted: list[bytes], left_out: dict[bytes, str]) -> None:
    """Add all wanted paths to the index; a path that git refuses is left out, and the rest is retried."""
    settled = add_in_stored_form(git, wanted)
    wanted = [path for path in wanted if path not in settled]
    for _ in range(_TRIES):
        paths = [path for path in wanted if path not in left_out]
        try:
            _add(git, paths)
            return
        except GitFailed as failure:
            if cannot_encode(failure):
                encoded = encodings_of(git, paths)
                _add_encoded(git, encoded, left_out)
                wanted = [path for path in paths if path not in encoded]
                continue
            refused = _REFUSED.search(failure.message.encode(errors="surrogateescape"))
            if refused is None or refused.group(1) in left_out:
                raise
            left_out[refused.group(1)] = "rejected by git"
    raise GitFailed("update-index", None, f"git rejected more than {_TRIES} files")


def _add(git: Git, paths: Iterable[bytes]) -> None:
    listing = b"".join(path + b"\0" for path in paths)
    reading_files(git, "update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=listing)


def _add_encoded(git: Git, paths: Iterable[bytes], left_out: dict[bytes, str]) -> None:
    """Add files with a declared encoding; those that do not have it are added as they are."""
    for path in paths:
        try:
            _add(git, [path])
        except GitFailed:
            try:
                add_unencoded(git, path)
            except (GitFailed, OSError):
                left_out[path] = "rejected by git"
