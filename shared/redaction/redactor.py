"""Finds secrets in a text: known values in all their spellings, and well-known shapes."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import ahocorasick

from shared.redaction.json_text import JsonText, Unescaped
from shared.redaction.pieces import GapMap, has_line_numbers, squeezed, stripped, without_line_numbers
from shared.redaction.shapes import LONGEST_SHAPE, shaped, tokens
from shared.redaction.spans import MARK, Span, joined, replaced
from shared.redaction.spellings import is_distinct, spellings
from shared.redaction.stream import StreamRedactor

__all__ = ["MARK", "Redactor"]

_SPREAD = 8
"""How many times longer than in one piece a form may be in pieces."""
_PACKED = "H4sI"
"""How the bytes of gzip begin in base64."""
_PACKED_TEXT = re.compile(rf"{_PACKED}[A-Za-z0-9+/_\-]{{8,}}")
_PACKED_AT_END = re.compile(rf"{_PACKED}[A-Za-z0-9+/_\-\s]*\Z")
_HELD_PACKED = 4096
_ESCAPES_AT_MOST = 2
"""How often a text in JSON may have been written into JSON again."""
_UNPACKED_BYTES = 1_000_000
_PACKED_AT_MOST = 32
_WORD_AT_END = re.compile(r"\S*\Z")


class Redactor:
    """Finds the given secrets, each in all its spellings and in pieces, and all well-known token shapes."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: dict[str, set[str]] = {}
        """Every form by its text without white space: one pass of the automaton finds forms whole and in pieces."""
        self._in_pieces: set[str] = set()
        for secret in secrets:
            for form in map(stripped, spellings(secret)):
                if key := squeezed(form):
                    self._forms.setdefault(key, set()).add(form)
                    self._in_pieces.update([key] if is_distinct(key, secret) else [])
        self._automaton = ahocorasick.Automaton()
        for key in self._forms:
            self._automaton.add_word(key, key)
        if self._forms:
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
        return self.knows(text) or next(tokens(text), None) is not None

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

    def spans(self, text: str) -> list[Span]:
        """Return the positions of secrets: sorted, overlapping ones joined."""
        return joined([*self._known(text), *shaped(text)])

    def open_from(self, text: str) -> int:
        """Return the position from which `text` may be the beginning of a secret that is not yet complete."""
        return min(self._hold_for_known(text), _hold_for_shapes(text), _hold_for_packed(text))

    def _known(self, text: str, escapes: int = _ESCAPES_AT_MOST) -> Iterator[Span]:
        if not self._forms:
            return
        whole = squeezed(text)
        yield from self._forms_in(text, whole)
        if has_line_numbers(text):
            yield from self._forms_in(text, without_line_numbers(text), numbered=True)
        if _PACKED in whole:
            yield from self._packed(text, whole)
        if escapes and "\\" in text:
            plain = Unescaped(text)
            yield from ((plain.place(start), plain.place(end)) for start, end in self._known(plain.text, escapes - 1))

    def _forms_in(self, text: str, whole: str, *, numbered: bool = False) -> Iterator[Span]:
        places = None
        for end, key in self._automaton.iter(whole):
            places = places or GapMap(text, numbered=numbered)
            span = places.place(end - len(key) + 1), places.place(end) + 1
            if self._is_form(text, span, key):
                yield span

    def _is_form(self, text: str, span: Span, key: str) -> bool:
        """Whether a secret is there in one piece, or in pieces that are too unlikely to be there by chance."""
        start, end = span
        if key in self._in_pieces and end - start <= _SPREAD * len(key):
            return True
        return text[start:end] in self._forms[key]

    def _packed(self, text: str, whole: str) -> Iterator[Span]:
        for found in islice(_PACKED_TEXT.finditer(whole), _PACKED_AT_MOST):
            if self.knows(_unpacked(found.group())):
                places = GapMap(text)
                yield places.place(found.start()), places.place(found.end() - 1) + 1

    def _hold_for_known(self, text: str) -> int:
        start = max(0, len(text) - _SPREAD * self._longest)
        tail = text[start:]
        rest = squeezed(tail)
        for position in range(max(0, len(rest) - self._longest), len(rest)):
            if rest[position] in self._first:
                beginning = rest[position:]
                if self._automaton.longest_prefix(beginning) == len(beginning):
                    return start + GapMap(tail).place(position)
        return len(text)


def _hold_for_packed(text: str) -> int:
    """Gzip is recognized as a whole only: it is held back from its beginning, if that is not too far away."""
    found = _PACKED_AT_END.search(text, max(0, len(text) - _HELD_PACKED))
    return found.start() if found else len(text)


def _hold_for_shapes(text: str) -> int:
    """Shapes contain no white space: only the last word can become one, up to the maximum length of a shape."""
    word = _WORD_AT_END.search(text, max(0, len(text) - LONGEST_SHAPE))
    return word.start() if word else len(text)


def _unpacked(packed: str) -> str:
    """The text in gzip and base64, as far as it can be read; without the packed texts that it may contain itself."""
    usable = packed.translate(str.maketrans("-_", "+/"))
    try:
        content = base64.b64decode(usable[: len(usable) // 4 * 4])
        text = zlib.decompressobj(wbits=31).decompress(content, _UNPACKED_BYTES).decode(errors="replace")
    except (binascii.Error, zlib.error):
        return ""
    return text.replace(_PACKED, "")
