"""Paths as git writes them in a patch: `"a/na\\303\\257ve"` for `naïve`."""

from __future__ import annotations

import re

_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
NOTHING = b"/dev/null"


def path_of(written: bytes, side: bytes = b"") -> str | None:
    """The path, without the prefix `side` (`a/`, `b/`); None for `/dev/null`.

    Bytes that are not UTF-8 become U+FFFD: a path from a drone is shown, never opened.
    """
    if quoted := _QUOTED.match(written):
        written = unquoted(quoted[1])
    else:
        # After a name with spaces, git writes a tab.
        written = written.removesuffix(b"\t")
        if written == NOTHING:
            return None
    return written.removeprefix(side).decode("utf-8", "replace")


def paths_of(names: bytes) -> tuple[str, str]:
    """Both paths of `a/PATH b/PATH`; only without quotes and renames can they be told apart with certainty."""
    found = _QUOTED.match(names)
    if found:
        rest = names[found.end() :].lstrip(b" ")
        return path_of(found[0], b"a/") or "", path_of(rest, b"b/") or ""
    if names.endswith(b'"') and (start := names.find(b' "')) > 0:
        return path_of(names[:start], b"a/") or "", path_of(names[start + 1 :], b"b/") or ""
    middle = len(names) // 2
    if names[middle : middle + 1] == b" " and names[2:middle] == names[middle + 3 :]:
        return path_of(names[:middle], b"a/") or "", path_of(names[middle + 1 :], b"b/") or ""
    old, _, new = names.partition(b" b/")
    return path_of(old, b"a/") or "", path_of(new) or ""


def unquoted(text: bytes) -> bytes:
    """The bytes between the quotes, with git's escapes replaced."""
    return _ESCAPED.sub(lambda found: _escaped(found[1]), text)


def _escaped(code: bytes) -> bytes:
    return bytes([int(code, 8) & 0xFF]) if len(code) > 1 else _LETTERS.get(code, code)
