"""Submodules as part of a tree: commits of other repositories. One that was removed or replaced is delivered so."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from drone.sandbox import CommandSpec, Sandbox
from drone.sandbox.entering import descend
from drone.sandbox.trees import remove_entry
from drone.workspace.encodings import inside
from drone.workspace.git import Git

_LISTED = re.compile(rb"(?<![^\0])160000 ([0-9a-f]{40,64}) \d\t([^\0]+)")
_PATH = re.compile(rb'^\s*path\s*=\s*"?(.*?)"?\s*$', re.MULTILINE)
_NO_SUCH_FILE = 128
_SECONDS = 60.0
_LARGEST = 1 << 20
"""Bytes of `.gitmodules`, more than ten thousand submodules."""


@dataclass(frozen=True)
class Submodules:
    """The submodules of a commit, compared with the work tree."""

    commits: Mapping[bytes, str]
    """Of all, by path."""
    gone: frozenset[bytes] = frozenset()
    """Removed, replaced by a file, or by a directory that `.gitmodules` no longer names."""
    filled: frozenset[bytes] = frozenset()
    """The others with anything in their directories, and those that are only declared."""
    repositories: frozenset[bytes] = frozenset()
    """Those in which there is a repository."""


def submodules_of(git: Git) -> Mapping[bytes, str]:
    """Path and commit of each submodule in the index."""
    return {path: commit.decode() for commit, path in _LISTED.findall(git.raw("ls-files", "-z", "--stage"))}


def compared(git: Git, parent: str | None, submodules: Mapping[bytes, str]) -> Submodules:
    """Compare the submodules of the commit `parent` with the work tree."""
    names_in = {path: content(git, path) for path in submodules}
    gone = {path for path, names in names_in.items() if names is None}
    filled = {path for path, names in names_in.items() if names}
    declared = _declared_in(_modules_file(git))
    repositories = {path for path in filled if ".git" in (names_in[path] or ())}
    plain = filled - repositories
    if plain or not declared <= submodules.keys():
        before = _declared_in(git.raw("cat-file", "blob", f"{parent}:.gitmodules", codes=(0, _NO_SUCH_FILE)))
        gone |= plain & (before - declared)
        filled |= declared - submodules.keys() - before
    return Submodules(submodules, frozenset(gone), frozenset(filled - gone), frozenset(repositories))


def remove_from_index(git: Git, paths: frozenset[bytes]) -> None:
    """Let the paths be new ones: what is there now is not tracked."""
    if paths:
        git.text("update-index", "-z", "--force-remove", "--stdin", stdin=b"".join(path + b"\0" for path in paths))


def unchanged(sandbox: Sandbox, work: Path, submodules: Mapping[bytes, str]) -> frozenset[bytes]:
    """Those that are as their commit, of submodules with repositories; only git in the sandbox looks into these."""
    if not submodules:
        return frozenset()
    lines = [
        f'[ "$(git -C {name} rev-parse HEAD)" = "{submodules[path]}" ] && '
        f'[ -z "$(git -C {name} status --porcelain || echo failed)" ] && echo "unchanged {number}"'
        for number, path in enumerate(submodules)
        for name in [shlex.quote(os.fsdecode(path))]
    ]
    said = set(sandbox.run(CommandSpec("\n".join(lines), workspace=work, timeout=_SECONDS)).output.splitlines())
    return frozenset(path for number, path in enumerate(submodules) if f"unchanged {number}" in said)


def empty_submodules(git: Git) -> None:
    """Empty the directories of all submodules: the repositories that they belonged to are gone with `.git`.

    Raises OSError if one cannot be emptied, or there is a link on the way to it, which could lead elsewhere.
    """
    for path in submodules_of(git):
        *around, name = os.fsdecode(path).split("/")
        where = descend(git.work_tree or Path(), around)
        try:
            remove_entry(name, where)
            os.mkdir(name, dir_fd=where)
        finally:
            os.close(where)


def content(git: Git, path: bytes) -> list[str] | None:
    """The names in a submodule's directory; None if it is no directory any more. Empty if it cannot be read."""
    if git.work_tree is None:
        raise ValueError("a work tree is required")
    try:
        where = descend(git.work_tree, os.fsdecode(path).split("/"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        return []
    try:
        listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=where)
    except PermissionError:
        return []
    finally:
        os.close(where)
    try:
        return os.listdir(listed)  # noqa: PTH208 - of a descriptor
    finally:
        os.close(listed)


def _declared_in(modules: bytes) -> frozenset[bytes]:
    return frozenset(_PATH.findall(modules))


def _modules_file(git: Git) -> bytes:
    try:
        with inside(git, b".gitmodules") as file:
            return file.read(_LARGEST)
    except OSError:
        return b""
