"""What tools leave behind as a cache: untracked, it is no part of the work, although git does not ignore it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from drone.workspace.encodings import inside
from drone.workspace.git import Git

CACHES = (
    *("__pycache__", "*.pyc", "*.pyo", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox"),
    *(".venv", ".ipynb_checkpoints", ".coverage", "node_modules", ".parcel-cache", ".turbo", ".eslintcache"),
    *(".stylelintcache", ".sass-cache", ".phpunit.cache", ".phpunit.result.cache", ".gradle", ".terraform"),
    *(".zig-cache", ".dart_tool", ".ccache", ".DS_Store"),
)
"""Names that no tool gives to anything else; a directory goes with all that is in it."""
_TAG = b"CACHEDIR.TAG"
TAGS = f":(glob)**/{_TAG.decode()}"
"""Where git looks for tags."""
_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""Makes a directory a cache, whatever its name: <https://bford.info/cachedir/>."""


def caches_in(git: Git, untracked: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The untracked files that belong to a cache, each with the name of the cache: of a directory with a slash."""
    paths = list(untracked)
    tagged = [path.removesuffix(_TAG) for path in paths if path.rpartition(b"/")[2] == _TAG and _is_tag(git, path)]
    directories = tuple(directory for directory in tagged if directory)
    for path in paths:
        named = _named(path)
        if found := [*named, *(each for each in directories if path.startswith(each))]:
            yield path, min(found, key=len)


def _named(path: bytes) -> Iterator[bytes]:
    *directories, name = path.split(b"/")
    for depth, directory in enumerate(directories, 1):
        if _is_cache(directory):
            yield b"/".join(directories[:depth]) + b"/"
            return
    if _is_cache(name):
        yield path


@lru_cache(10_000)
def _is_cache(name: bytes) -> bool:
    return any(fnmatchcase(os.fsdecode(name), pattern) for pattern in CACHES)


def _is_tag(git: Git, path: bytes) -> bool:
    try:
        with inside(git, path) as file:
            return file.read(len(_SIGNATURE)) == _SIGNATURE
    except OSError:
        return False
