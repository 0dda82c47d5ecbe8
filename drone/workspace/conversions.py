"""Files that the repository does not store as their attributes say: a change of a line stays a change of that line.

Attributes are often added after the files. From then on git would convert all lines of such a file when one of them
changes, and even when nothing changes: it compares what it would store. `text=auto` has an exception for this; here it
also holds for `text`, `eol`, `ident` and `working-tree-encoding`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import partial
from typing import IO

from drone.workspace.encodings import inside, mode_of, reading_files
from drone.workspace.git import Git, GitFailed

_PORTION = 1 << 20
_LARGEST_COMPARED = 10 * 1000 * 1000
_MOST_LINES = 10_000
_ARGUMENTS = 100_000
"""Bytes of names in one command; Linux allows two million."""
_SHA1_DIGITS = 40
_CONVERTIBLE = re.compile(rb"[\r\0\x80-\xff]|\$Id")
"""Content without any of these is the same under all attributes."""
_ID = re.compile(rb"\$Id: [^$\n]*\$")
_LISTED = re.compile(rb"\d+ ([0-9a-f]+) 0\ti/(\S*) +w/\S* +attr/([^\t]*)\t(.*)", re.DOTALL)
_WITH_CRLF = (b"crlf", b"mixed", b"-text")
_IDENT, _ENCODING = b"ident", b"working-tree-encoding"
_OFF = (b"unspecified", b"unset")


@dataclass(frozen=True)
class _Tracked:
    path: bytes
    blob: str
    loses_crlf: bool
    """Whether git would convert ends of lines that the repository has."""
    gains_crlf: bool
    """Whether git converts ends of lines when it writes the file into the work tree."""
    attributes: Mapping[bytes, bytes] = field(default_factory=dict)
    """Those of `ident` and `working-tree-encoding` that apply, with their values."""
    shown: bytes = b""
    """What git writes into the work tree."""


def has_bytes_of(git: Git, path: bytes, blob: str) -> bool:
    """Whether a file has exactly the bytes of a blob: then it is unchanged, whatever git would store of it.

    False for a large file, which is staged to tell.
    """
    try:
        with inside(git, path) as file:
            return os.fstat(file.fileno()).st_size <= _LARGEST_COMPARED and _is_blob(blob, file.read())
    except OSError:
        return False


def _is_blob(blob: str, content: bytes) -> bool:
    digest = hashlib.new("sha1" if len(blob) == _SHA1_DIGITS else "sha256", usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content))
    digest.update(content)
    return digest.hexdigest() == blob


def add_in_stored_form(git: Git, paths: Iterable[bytes]) -> set[bytes]:
    """Add to the index those of the files that the repository does not store as their attributes say; return them.

    Lines that are as git wrote them into the work tree are stored as before, the others as they are in the work tree.
    """
    entries: dict[bytes, bytes] = {}
    for each in _unlike_their_attributes(git, [path for path in paths if _is_convertible(git, path)]):
        try:
            with inside(git, each.path) as file:
                blob, mode = _blob_of(git, each, file.read()), mode_of(file)
        except OSError:
            continue  # gone or replaced meanwhile: git adds what it finds
        if blob is not None:
            entries[each.path] = f"{mode} {blob} 0\t".encode() + each.path + b"\0"
    if entries:
        git.text("update-index", "-z", "--index-info", stdin=b"".join(entries.values()))
    return set(entries)


def in_portions(paths: Iterable[bytes]) -> Iterator[list[str]]:
    """The paths as arguments, as many at a time as a command can take."""
    portion: list[str] = []
    size = 0
    for path in paths:
        if portion and size + len(path) > _ARGUMENTS:
            yield portion
            portion, size = [], 0
        portion.append(os.fsdecode(path))
        size += len(path)
    if portion:
        yield portion


def _portions(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.read, _PORTION), b"")


def _is_convertible(git: Git, path: bytes) -> bool:
    try:
        with inside(git, path) as file:
            return any(map(_CONVERTIBLE.search, _portions(file)))
    except OSError:
        return False


def _unlike_their_attributes(git: Git, paths: Iterable[bytes]) -> Iterator[_Tracked]:
    tracked = [each for names in in_portions(paths) for each in _tracked(git, names)]
    applied = _attributes(git, [each.path for each in tracked]) if tracked else {}
    for each in tracked:
        found = replace(each, attributes=applied.get(each.path, {}))
        if (found.loses_crlf and found.gains_crlf) or found.attributes:
            found = replace(found, shown=reading_files(git, "cat-file", "--filters", _path(found), found.blob))
        if found.loses_crlf or (found.attributes and not _is_kept(git, found)):
            yield found


def _tracked(git: Git, names: list[str]) -> Iterator[_Tracked]:
    literally = git.adding({"GIT_LITERAL_PATHSPECS": "1"})
    for line in literally.raw("ls-files", "-z", "--stage", "--eol", "--", *names).split(b"\0"):
        if found := _LISTED.fullmatch(line):
            blob, ends, attribute, path = found.groups()
            attribute = attribute.rstrip()
            is_text = attribute.startswith(b"text") and not attribute.startswith(b"text=auto")
            yield _Tracked(path, blob.decode(), is_text and ends in _WITH_CRLF, attribute.endswith(b"eol=crlf"))


def _attributes(git: Git, paths: Iterable[bytes]) -> Mapping[bytes, Mapping[bytes, bytes]]:
    names = (os.fsdecode(name) for name in (_IDENT, _ENCODING))
    fields = git.raw("check-attr", "-z", "--stdin", *names, stdin=b"".join(path + b"\0" for path in paths)).split(b"\0")
    found: dict[bytes, dict[bytes, bytes]] = {}
    for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        if value not in _OFF:
            found.setdefault(path, {})[name] = value
    return found


def _is_kept(git: Git, each: _Tracked) -> bool:
    """Whether git would store again what it stored."""
    try:
        # Only if it writes the object is it an error that the file does not have its declared encoding.
        stored = reading_files(git, "hash-object", "-w", _path(each), "--stdin", stdin=each.shown)
    except GitFailed:
        return False
    return stored.decode().strip() == each.blob


def _path(each: _Tracked) -> str:
    return f"--path={os.fsdecode(each.path)}"


def _blob_of(git: Git, each: _Tracked, now: bytes) -> str | None:
    """The blob to store for the file's content; None if only git can tell."""
    if not (each.gains_crlf or each.attributes) or _is_blob(each.blob, each.shown):
        content: bytes | None = now
    elif now == each.shown:
        return each.blob
    else:
        content = _with_stored_lines(git.raw("cat-file", "blob", each.blob), each, now)
    return None if content is None else git.text("hash-object", "-w", "--stdin", stdin=content)


def _with_stored_lines(stored: bytes, each: _Tracked, now: bytes) -> bytes | None:
    """The content, with each line that is as git wrote it in the form in which it was stored."""
    if (comparable := _comparable(stored, each.shown, now, each.attributes.get(_ENCODING))) is None:
        return None
    shown, now = comparable
    old, before, after = (text.splitlines(keepends=True) for text in (stored, shown, now))
    if len(old) != len(before) or len(before) + len(after) > _MOST_LINES:
        return now
    # The id is the one of the blob that was written last; the file may be from before.
    was, is_now = ([_ID.sub(b"$Id$", line) for line in lines] for lines in (before, after))
    steps = SequenceMatcher(None, was, is_now).get_opcodes()
    lines = [old[a:b] if step == "equal" else after[c:d] for step, a, b, c, d in steps]
    return b"".join(line for some in lines for line in some)


def _comparable(stored: bytes, shown: bytes, now: bytes, encoding: bytes | None) -> tuple[bytes, bytes] | None:
    """`shown` and `now` as they would be stored but for the ends of lines; None if only git can tell."""
    decoded = None if encoding is None else _in_utf_8(shown, encoding)
    if encoding is None or decoded is None or decoded.replace(b"\r\n", b"\n") != stored.replace(b"\r\n", b"\n"):
        return shown, now  # without an encoding, or not in the declared one
    is_now = _in_utf_8(now, encoding)
    return None if is_now is None else (decoded, is_now)


def _in_utf_8(content: bytes, encoding: bytes) -> bytes | None:
    codec = encoding.decode(errors="replace").lower()
    # With a byte order mark, which is not stored.
    codec = "utf-16" if codec.startswith("utf-16") and codec.endswith("-bom") else codec
    try:
        return content.decode(codec).encode()
    except (UnicodeError, LookupError):
        return None
