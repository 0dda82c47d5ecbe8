"""Removes secrets from text before it leaves a machine: known values in all their spellings, and well-known shapes.

Known values (keys, passwords) are found by one pass of an automaton, regardless of their number; shapes (`sk-…`,
`ghp_…`, a password in a URL) by regular expressions that run only if a cheap check shows that they might match. In a
stream, secrets are found regardless of how the text is split.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import ahocorasick

MARK = "[redacted]"
SHORTEST = 4
"""Shorter values are not treated as secrets: they would match everywhere."""
_SHORTEST_ENCODED = 8
_LONGEST_SHAPE = 1024
"""Maximum length of a match of any shape; a stream holds back at most this much for shapes."""

_RANDOM = r"(?=[A-Za-z_\-]*[0-9A-Z])"
"""A token has a digit or a capital; `fd_set_nonblocking_mode` is a name."""
_SHAPES: tuple[tuple[str, str], ...] = (
    ("sk-", rf"(?<![A-Za-z0-9])sk-{_RANDOM}[A-Za-z0-9_\-]{{16,250}}"),
    ("gh", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{20,250}"),
    ("github_pat_", r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20,250}"),
    ("glpat-", r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_\-]{16,250}"),
    ("xox", r"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9\-]{10,250}"),
    ("KIA", r"(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("SIA", r"(?<![A-Za-z0-9])ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("AIza", r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_\-]{35}"),
    ("_", rf"(?<![A-Za-z0-9])f[adj]_{_RANDOM}[A-Za-z0-9_\-]{{16,250}}"),
    ("://", r"(?<=://)[^\s/@:\"'<>]{0,250}:[^\s/@\"'<>]{1,250}(?=@)"),
)
"""A required substring, and the expression. None of them matches white space, see `_hold_for_shapes`."""
_WORD_AT_END = re.compile(r"\S*\Z")
_USERINFO = re.compile(r"(?<=://)[^\s/@\"'<>]+(?=@)")
_QUERY_SECRET = re.compile(r"(?i)([?&](?:access_token|private_token|token|key|api_key|password|secret)=)[^&#\s]+")

Span = tuple[int, int]


class Redactor:
    """Finds the given secrets, each also in base64, URL-quoted and JSON-escaped, and all well-known token shapes."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._spellings = sorted({form for secret in secrets for form in _spellings(secret)})
        self._automaton = ahocorasick.Automaton()
        for form in self._spellings:
            self._automaton.add_word(form, len(form))
        if self._spellings:
            self._automaton.make_automaton()
        self._first = frozenset(form[0] for form in self._spellings)
        self._longest = max(map(len, self._spellings), default=0)
        self._shapes = [(hint, re.compile(pattern)) for hint, pattern in _SHAPES]

    def text(self, text: str) -> str:
        """Return the text with each secret replaced by `[redacted]`."""
        return _replace(text, self.spans(text))

    def knows(self, text: str) -> bool:
        """Whether one of the given secrets is in the text, in any spelling; well-known shapes do not count."""
        return next(self._known(text), None) is not None

    def value(self, value: Any) -> Any:
        """Return a JSON value with all its strings redacted, including keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def stream(self) -> StreamRedactor:
        """Return a redactor for a text that arrives in pieces."""
        return StreamRedactor(self)

    def spans(self, text: str) -> list[Span]:
        """Return the positions of secrets: sorted, overlapping ones joined."""
        found = [*self._known(text), *self._shaped(text)]
        return _joined(found)

    def open_from(self, text: str) -> int:
        """Return the position from which `text` may be the beginning of a secret that is not yet complete."""
        return min(self._hold_for_known(text), _hold_for_shapes(text))

    def _known(self, text: str) -> Iterator[Span]:
        if self._spellings:
            for end, length in self._automaton.iter(text):
                yield end - length + 1, end + 1

    def _shaped(self, text: str) -> Iterator[Span]:
        for hint, pattern in self._shapes:
            if hint in text:
                yield from (match.span() for match in pattern.finditer(text))

    def _hold_for_known(self, text: str) -> int:
        start = max(0, len(text) - self._longest + 1)
        for position in range(start, len(text)):
            if text[position] in self._first:
                rest = text[position:]
                if self._automaton.longest_prefix(rest) == len(rest):
                    return position
        return len(text)


class StreamRedactor:
    """Redacts text that arrives in pieces; text that might become a secret is held back until this is decided.

    At most a word (1,024 characters) or the length of the longest known secret is held back, whichever is more.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._pending = ""
        self._before = ""
        """The last released character: whether a token can begin depends on the character before it."""
        self._covered = 0
        """Number of pending characters that belong to a secret that was already replaced."""

    def feed(self, text: str) -> str:
        """Add a piece, and return the text that can be released."""
        return self._release(text, at_end=False)

    def flush(self) -> str:
        """Return all held-back text, because the text has ended."""
        return self._release("", at_end=True)

    def _release(self, text: str, *, at_end: bool) -> str:
        known = self._before + self._pending + text
        lead = len(self._before)
        spans = _joined([*self._redactor.spans(known), *self._covering(lead)])
        cut = len(known) if at_end else max(lead, self._redactor.open_from(known))
        shown = _replace(known[:cut], [(a, min(b, cut)) for a, b in spans if a < cut], start=lead, skip=self._covered)
        # A span that begins before the cut already has its mark, and so does the one that covers the beginning.
        reaching = [b for a, b in spans if b > cut and (a < cut or (self._covered and a <= lead))]
        self._covered = max(reaching, default=cut) - cut
        self._before = known[cut - 1 : cut] if cut else ""
        self._pending = known[cut:]
        return shown

    def _covering(self, lead: int) -> list[Span]:
        return [(lead, lead + self._covered)] if self._covered else []


def redact_url(url: str) -> str:
    """Return a URL that is safe to show: without password, and for http without user, which may be a token.

    Works on any text that contains URLs. `ssh://git@host` keeps its user.
    """
    shown = _USERINFO.sub(lambda match: _shown_user(match.group(), url[: match.start()]), url)
    return _QUERY_SECRET.sub(rf"\1{MARK}", shown)


def _shown_user(userinfo: str, before: str) -> str:
    user, colon, _ = userinfo.partition(":")
    if before.endswith(("http://", "https://")):
        return MARK
    return f"{user}:{MARK}" if colon else user


def _spellings(secret: str) -> set[str]:
    """All forms in which a secret may appear in a text."""
    if len(secret) < SHORTEST:
        return set()
    forms = {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
    forms.add(json.dumps(secret, ensure_ascii=False)[1:-1])
    return forms | _in_base64(secret.encode("utf-8", "surrogatepass"))


def _in_base64(secret: bytes) -> set[str]:
    """Base64 depends on the secret's offset in the encoded text: three forms, each without its shared ends."""
    forms = set()
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret).decode().rstrip("=")
        # The first characters contain bits of the preceding text, the last ones of the following text.
        first = (0, 2, 3)[shift]
        last = len(whole) - (1 if (shift + len(secret)) % 3 else 0)
        core = whole[first:last]
        if len(core) >= _SHORTEST_ENCODED:
            forms |= {core, core.replace("+", "-").replace("/", "_")}
    return forms


def _hold_for_shapes(text: str) -> int:
    """Shapes contain no white space: only the last word can become one, up to the maximum length of a shape."""
    word = _WORD_AT_END.search(text, max(0, len(text) - _LONGEST_SHAPE))
    return word.start() if word else len(text)


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _replace(text: str, spans: Iterable[Span], *, start: int = 0, skip: int = 0) -> str:
    """Replace each span by the mark, from `start` on; a span over the first `skip` characters already has its mark."""
    pieces = []
    position = start
    for first, end in spans:
        if end <= start:
            continue
        if first > start or not skip:
            pieces += [text[position : max(first, start)], MARK]
        position = end
    return "".join([*pieces, text[position:]])
