"""What kind of address a git URL is, and whether it leads into directories of the drone itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

_REMOTE_SCHEMES = frozenset({"https", "http", "ssh", "git", "git+ssh", "ssh+git"})
_SUFFIXES = ("", "/.git", ".git", ".git/.git")
"""Where git looks for the repository of a path."""
_GITFILE = "gitdir:"


def is_remote(url: str) -> bool:
    """Whether git would contact another machine: a URL with a remote scheme, or `user@host:path`."""
    scheme, separator, _ = url.partition("://")
    if separator:
        return scheme.lower() in _REMOTE_SCHEMES
    # git's short form, user@host:path; a colon after the first slash belongs to a path, two colons name a helper.
    host, colon, rest = url.partition(":")
    return bool(colon) and "/" not in host and not rest.startswith(":")


def is_local(url: str) -> bool:
    """Whether git would read this machine's disk: `file://` or a path. Other URLs that are not remote name a helper."""
    scheme, separator, _ = url.partition("://")
    if separator:
        return scheme.lower() == "file"
    return not is_remote(url) and "::" not in url.partition("/")[0]


def leads_into(url: str, directories: Sequence[Path]) -> bool:
    """Whether git would read a file at or below one of `directories` for this local URL, also through links.

    A place on the way counts too: a link inside such a directory could be replaced after this check.
    """
    guarded = {identity for directory in directories if (identity := _identity(directory))}
    return any(_identity(place) in guarded for path in _places(_path(url)) for place in (path, *path.parents))


def is_beside(url: str, other: str) -> bool:
    """Whether a local URL leads into the directory that holds the repository of another one, also through links."""
    around = _resolved(Path(_path(other))).parent
    return around != around.parent and _resolved(Path(_path(url))).is_relative_to(around)


def _path(url: str) -> str:
    """The path that git reads; it ignores the host in a `file://` URL, and runs in the root directory."""
    scheme, separator, rest = url.partition("://")
    path = unquote("/" + rest.partition("/")[2]) if separator and scheme.lower() == "file" else url
    # Not "~": a command line's shell would expand it, and git-upload-pack does too.
    return os.path.join("/", os.path.expanduser(path))  # noqa: PTH111, PTH118 - Path would drop a trailing part


def _places(path: str) -> Iterator[Path]:
    """The path and what git tries for it: as it is written, without `..`, and with links resolved."""
    for suffix in _SUFFIXES:
        written = Path(path.rstrip("/") + suffix)
        for place in (written, Path(os.path.normpath(written)), _resolved(written)):
            yield place
            yield from _target_of_gitfile(place)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        # A loop of links, or no path at all: git cannot read it either.
        return path


def _target_of_gitfile(path: Path) -> Iterator[Path]:
    """The repository that a `.git` file names."""
    with suppress(OSError, UnicodeDecodeError, ValueError):
        if path.is_file():
            with path.open() as file:
                text = file.read(4096)
            if text.startswith(_GITFILE):
                yield _resolved(path.parent / text.removeprefix(_GITFILE).strip())


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and file number: the same for a bind mount, and for another spelling on a disk that ignores case."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
