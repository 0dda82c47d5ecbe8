"""Removes secrets from a text that arrives in pieces."""

from __future__ import annotations

from typing import Protocol

from shared.redaction.readings import JsonText
from shared.redaction.spans import Span, joined, replaced

_BEFORE = 64


class Finder(Protocol):
    """What finds secrets in a text, and their possible beginnings at its end."""

    def spans(self, text: str, start: int) -> list[Span]: ...
    def open_from(self, text: str, start: int) -> int: ...


class StreamRedactor:
    """Redacts text that arrives in pieces; text that might become a secret is held back until this is decided.

    At most a word (1,024 characters) or the length of the longest known secret is held back, whichever is more.
    """

    def __init__(self, redactor: Finder, decoder: JsonText | None = None) -> None:
        """`decoder`: for a text in JSON, which is released without its escapes: secrets are not seen behind them."""
        self._redactor = redactor
        self._decoder = decoder
        self._pending = ""
        self._before = ""
        """The last released characters: whether a secret begins may depend on what is before it."""
        self._covered = 0
        """Number of pending characters that belong to a secret that was already replaced."""

    def feed(self, text: str) -> str:
        """Add a piece, and return the text that can be released."""
        return self._release(self._decoder.feed(text) if self._decoder else text, at_end=False)

    def flush(self) -> str:
        """Return all held-back text, because the text has ended."""
        return self._release(self._decoder.flush() if self._decoder else "", at_end=True)

    def _release(self, text: str, *, at_end: bool) -> str:
        known = self._before + self._pending + text
        lead = len(self._before)
        # What was released is decided. Without the text before it, its beginning could be taken for that of a token.
        spans = joined([*self._redactor.spans(known, lead), *self._covering(lead)])
        cut = len(known) if at_end else self._redactor.open_from(known, lead)
        shown = replaced(known[:cut], [(a, min(b, cut)) for a, b in spans if a < cut], start=lead, skip=self._covered)
        # A span that begins before the cut already has its mark, and so does the one that covers the beginning.
        reaching = [b for a, b in spans if b > cut and (a < cut or (self._covered and a <= lead))]
        self._covered = max(reaching, default=cut) - cut
        self._before = known[max(0, cut - _BEFORE) : cut]
        self._pending = known[cut:]
        return shown

    def _covering(self, lead: int) -> list[Span]:
        return [(lead, lead + self._covered)] if self._covered else []
