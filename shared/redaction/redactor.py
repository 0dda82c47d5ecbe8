"""Finds secrets in a text: known values in all their spellings, and well-known shapes."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import Any

import ahocorasick

from shared.redaction.pieces import GapMap, squeezed, stripped
from shared.redaction.readings import JsonText, Reading, plain_reading, readings
from shared.redaction.spans import MARK, Span, joined, replaced
from shared.redaction.spellings import is_common, is_distinct, spellings, stated
from shared.redaction.stream import StreamRedactor

__all__ = ["MARK", "Redactor"]

_SPREAD = 8
"""How many times longer than in one piece a form may be in pieces."""
_PACKED = "H4sI"
"""How the bytes of gzip begin in base64."""
_PACKED_TEXT = re.compile(rf"{_PACKED}[A-Za-z0-9+/_\-]{{8,}}")
_BEFORE_PACKED = re.compile(r"(?:.*[^A-Za-z0-9+/_\-\s])?", re.DOTALL)
_HELD_PACKED = 4096
_UNPACKED_BYTES = 1_000_000
_PACKED_AT_MOST = 32
_BEFORE_WORD = re.compile(r"(?:.*\s)?", re.DOTALL)


class Redactor:
    """Finds the given secrets, each in all its spellings and in pieces, and all well-known token shapes."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: dict[str, set[str]] = {}
        """Every form by its text without white space: one pass of the automaton finds forms whole and in pieces."""
        self._in_pieces: set[str] = set()
        secrets = set(secrets)
        common = {secret for secret in secrets if is_common(secret)}
        self._stated = stated(common)
        """Finds common values, where they are stated as secrets; None: there are none."""
        for secret in secrets - common:
            for form in map(stripped, spellings(secret)):
                if key := squeezed(form):
                    self._forms.setdefault(key, set()).add(form)
                    self._in_pieces.update([key] if is_distinct(key, secret) else [])
        self._automaton = ahocorasick.Automaton()
        for key in (*_BEGINNINGS, *self._forms):
            self._automaton.add_word(key, key)
        self._automaton.make_automaton()
        self._first = frozenset(key[0] for key in self._forms)
        self._longest = max((len(form) for forms in self._forms.values() for form in forms), default=0)

    def text(self, text: str) -> str:
        """Return the text with each secret replaced by `[redacted]`."""
        return replaced(text, self.spans(text))

    def knows(self, text: str) -> bool:
        """Whether one of the given secrets is in the text, in any spelling; well-known shapes do not count."""
        return next(self._known(text), None) is not None

    def has_token(self, text: str) -> bool:
        """Whether one of the given secrets or a well-known token is in the text; a password in a URL does not count."""
        return self.knows(text) or next(_tokens(text), None) is not None

    def value(self, value: Any) -> Any:
        """Return a JSON value with all its strings redacted, including keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def stream(self, *, of_json: bool = False) -> StreamRedactor:
        """Return a redactor for a text that arrives in pieces; one in JSON comes out without its escapes."""
        return StreamRedactor(self, JsonText() if of_json else None)

    def spans(self, text: str, start: int = 0) -> list[Span]:
        """Return the positions of secrets that begin at `start` or later: sorted, overlapping ones joined."""
        if self._is_harmless(text):
            return []
        beginnings = set[str]()
        known = [span for span in self._known(text, beginnings) if span[0] >= start]
        return joined([*known, *_shaped(text, beginnings, start)])

    def _is_harmless(self, text: str) -> bool:
        """Whether one look is enough, as for most pieces of a stream: there is no secret, and nothing to hide one."""
        if self._stated is not None or "\n" in text or "\\" in text:
            return False
        whole = squeezed(text)
        return _PACKED not in whole and next(self._automaton.iter(whole), None) is None

    def open_from(self, text: str, start: int = 0) -> int:
        """Return the position, from `start` on, at which a secret may begin that is not yet complete."""
        return min(self._hold_for_known(text, start), _hold_for_shapes(text, start), _hold_for_packed(text, start))

    def _known(self, text: str, beginnings: set[str] | None = None) -> Iterator[Span]:
        """Where the given secrets are. The beginnings of shapes that the text may contain are added to `beginnings`."""
        for reading in readings(text, _SPREAD * self._longest) if self._forms else [plain_reading(text)]:
            yield from self._forms_in(text, reading, beginnings)
            yield from self._packed_in(reading)
        if self._stated is not None:
            yield from (match.span(1) for match in self._stated.finditer(text))

    def _forms_in(self, text: str, reading: Reading, beginnings: set[str] | None) -> Iterator[Span]:
        for first, last in reading.parts(self._longest):
            # A slice: the automaton copies the whole text that it is given.
            for end, key in self._automaton.iter(reading.text[first:last]):
                if key not in self._forms:
                    if beginnings is not None:
                        beginnings.add(key)
                    continue
                span = reading.span(first + end - len(key) + 1, first + end + 1)
                if self._is_form(text[slice(*span)], reading, key):
                    yield span

    def _is_form(self, part: str, reading: Reading, key: str) -> bool:
        """Whether a secret is there in one piece, or in pieces that are too unlikely to be there by chance."""
        if key in self._in_pieces and len(part) <= _SPREAD * len(key):
            return True
        return reading.written(part) in self._forms[key]

    def _packed_in(self, reading: Reading) -> Iterator[Span]:
        if _PACKED in reading.text:
            for found in islice(_PACKED_TEXT.finditer(reading.text), _PACKED_AT_MOST):
                if self.knows(_unpacked(found.group())):
                    yield reading.span(*found.span())

    def _hold_for_known(self, text: str, start: int) -> int:
        start = max(start, len(text) - _SPREAD * self._longest)
        tail = text[start:]
        rest = squeezed(tail)
        for position in range(max(0, len(rest) - self._longest), len(rest)):
            if rest[position] in self._first:
                beginning = rest[position:]
                if self._automaton.longest_prefix(beginning) == len(beginning):
                    return start + GapMap(tail).place(position)
        return len(text)


def _hold_for_packed(text: str, start: int) -> int:
    """Gzip is recognized as a whole only: it is held back from its beginning, if that is not too far away."""
    before = _BEFORE_PACKED.match(text, max(start, len(text) - _HELD_PACKED))
    place = text.find(_PACKED, before.end() if before else start)
    return place if place >= 0 else len(text)


def _hold_for_shapes(text: str, start: int) -> int:
    """Shapes contain no white space: only the last word can become one, up to the maximum length of a shape."""
    before = _BEFORE_WORD.match(text, max(start, len(text) - _LONGEST_SHAPE))
    return before.end() if before else start


def _unpacked(packed: str) -> str:
    """The text in gzip and base64, as far as it can be read; without the packed texts that it may contain itself."""
    usable = packed.translate(str.maketrans("-_", "+/"))
    try:
        content = base64.b64decode(usable[: len(usable) // 4 * 4])
        text = zlib.decompressobj(wbits=31).decompress(content, _UNPACKED_BYTES).decode(errors="replace")
    except (binascii.Error, zlib.error):
        return ""
    return text.replace(_PACKED, "")


# --- tokens that are recognized by their shape, without being known -------------------------------

_LONGEST_SHAPE = 1024
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
_BEGINNINGS = frozenset(prefix for prefix, _ in (*_TOKENS, _PASSWORD))
"""One of these is in every text with a token or a password in a URL."""


def _shaped(text: str, beginnings: Container[str] = _BEGINNINGS, start: int = 0) -> Iterator[tuple[int, int]]:
    """The positions of tokens, and of users and passwords in URLs, that begin at `start` or later.

    `beginnings` are those that the text may contain.
    """
    return _found(text, (*_TOKENS, _PASSWORD), beginnings, start)


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    """The positions of tokens alone: a URL with a password may be an example."""
    return _found(text, _TOKENS, _BEGINNINGS)


def _found(
    text: str, shapes: Iterable[tuple[str, re.Pattern[str]]], beginnings: Container[str], start: int = 0
) -> Iterator[tuple[int, int]]:
    for prefix, pattern in shapes:
        if prefix in beginnings and prefix in text:
            yield from (match.span(1) for match in pattern.finditer(text, start))
