"""Tokens that are recognized by their shape, without being known."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator

LONGEST_SHAPE = 1024
"""Maximum length of a match of any shape; a stream holds back at most this much for shapes."""

_RANDOM = r"(?=[a-z_\-]{0,249}[0-9A-Z])"
"""A token has a digit or a capital; `fd_set_nonblocking_mode` is a name. Every part of an expression is bounded: else
a text full of beginnings takes time with the square of its length."""
_PREFIXED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sk-",), rf"{_RANDOM}[A-Za-z0-9_\-]{{16,250}}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{20,250}"),
    (("github_pat_",), r"[A-Za-z0-9_]{20,250}"),
    (("glpat-",), r"[A-Za-z0-9_\-]{16,250}"),
    (tuple(f"xox{kind}-" for kind in "abeprs"), r"[A-Za-z0-9\-]{10,250}"),
    (("AKIA", "ASIA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    (("AIza",), r"[A-Za-z0-9_\-]{35}"),
    (("fa_", "fd_", "fj_", "fl_", "fq_", "fs_"), rf"{_RANDOM}[A-Za-z0-9_\-]{{16,250}}"),
)
"""Beginnings, and what follows them. None of it matches white space, see `StreamRedactor`."""
# Each expression begins with its literal text, which `re` finds quickly; what must not precede it comes after it.
_TOKENS = [
    (prefix, re.compile(rf"({re.escape(prefix)}(?<![A-Za-z0-9]{re.escape(prefix)}){rest})"))
    for prefixes, rest in _PREFIXED
    for prefix in prefixes
]
_PASSWORD = ("://", re.compile(r"://([^\s/@:\"'<>]{0,250}:[^\s/@\"'<>]{1,250})(?=@)"))


BEGINNINGS = frozenset(prefix for prefix, _ in (*_TOKENS, _PASSWORD))
"""One of these is in every text with a token or a password in a URL."""


def shaped(text: str, beginnings: Container[str] = BEGINNINGS, start: int = 0) -> Iterator[tuple[int, int]]:
    """The positions of tokens, and of users and passwords in URLs, that begin at `start` or later.

    `beginnings` are those that the text may contain.
    """
    return _found(text, (*_TOKENS, _PASSWORD), beginnings, start)


def tokens(text: str) -> Iterator[tuple[int, int]]:
    """The positions of tokens alone: a URL with a password may be an example."""
    return _found(text, _TOKENS, BEGINNINGS)


def _found(
    text: str, shapes: Iterable[tuple[str, re.Pattern[str]]], beginnings: Container[str], start: int = 0
) -> Iterator[tuple[int, int]]:
    for prefix, pattern in shapes:
        if prefix in beginnings and prefix in text:
            yield from (match.span(1) for match in pattern.finditer(text, start))
