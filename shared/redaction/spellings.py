"""The forms in which a secret may appear in a text."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Shorter values are not treated as secrets: they would match everywhere."""
_WORD = 12
_RARE = 6
"""Shorter values, and words and numbers below `_WORD`, are in ordinary text by chance."""
_STATED = r"(?i:pass(?:word|wd|phrase|code)?|secret|token|key|pwd|auth|credentials?|pin)[\w-]{0,64}"
"""Names behind which a secret is stated; bounded, as everything that may begin anywhere in a text."""
_LONG = 8
"""From this length on, a value is also looked for in encodings that ordinary text may contain by chance."""
_SHORTEST_ENCODED = 8


def spellings(secret: str) -> set[str]:
    """All forms in which a secret may appear, as far as they stand in one piece."""
    if len(secret) < SHORTEST:
        return set()
    forms = {secret, quote(secret, safe=""), quote_plus(secret), *_in_json(secret), *_quoted(secret)}
    if len(secret) >= _LONG:
        forms |= {*_by_character(secret), *_in_bytes(_bytes(secret)), secret[::-1]}
    return forms | _in_base64(_bytes(secret))


def is_common(secret: str) -> bool:
    """Whether a value may be in ordinary text by chance: `test`, `password`, `8080`. Hiding it there hides the text."""
    is_word = (secret.isalpha() or secret.isdecimal()) and len(secret) < _WORD
    return (is_word or len(secret) < _RARE) and not any(map(str.isspace, secret))


def stated(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Finds values (group 1) where they are stated as secrets: `password = "…"`, `--token …`; None without values."""
    forms = sorted({form for secret in secrets for form in spellings(secret)}, key=len, reverse=True)
    if not forms:
        return None
    values = "|".join(map(re.escape, forms))
    return re.compile(rf"{_STATED}[\"'\]]{{0,8}}(?:\s{{0,3}}[:=]>?\s{{0,3}}|\s)[\"'(\[]{{0,8}}({values})(?!\w)")


def is_distinct(form: str, secret: str) -> bool:
    """Whether a form of a secret may also be recognized in pieces.

    If the secret is a word of letters, its pieces may be there by chance; if it is none, a form of letters encodes it.
    """
    return len(form) >= _LONG and not (form.isalpha() and secret.isalpha()) and len(set(form)) > _LONG // 2


def _bytes(secret: str) -> bytes:
    return secret.encode("utf-8", "surrogatepass")


def _in_json(secret: str) -> Iterator[str]:
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]


def _quoted(secret: str) -> Iterator[str]:
    """As in markup and in a shell."""
    yield html.escape(secret, quote=False)
    for apostrophe in ("&#x27;", "&#39;", "&apos;"):
        yield html.escape(secret, quote=False).replace('"', "&quot;").replace("'", apostrophe)
    yield shlex.quote(secret)
    yield secret.replace("'", "'\\''")
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", secret, flags=re.ASCII)
    yield re.sub(r'(["\\$`])', r"\\\1", secret)


def _by_character(secret: str) -> Iterator[str]:
    """Each character by its number."""
    for pattern in ("&#{};", "&#x{:x};", "&#x{:X};", "&#{:03};"):
        yield "".join(pattern.format(ord(c)) for c in secret)
    units = secret.encode("utf-16-be", "surrogatepass")
    for digits in (units.hex(), units.hex().upper()):
        yield "".join("\\u" + digits[at : at + 4] for at in range(0, len(digits), 4))


def _in_bytes(secret: bytes) -> Iterator[str]:
    """Each byte by its number, and base32."""
    for pattern in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\x{:02X}", "{:02x}", "{:02X}", "{:02x}:", "\\{:03o}"):
        yield "".join(pattern.format(each) for each in secret).rstrip(":")
    for shift in range(5):
        whole = base64.b32encode(bytes(shift) + secret).decode().rstrip("=")
        # The first characters contain bits of the preceding text, the last one of the following text.
        core = whole[-(-shift * 8 // 5) : len(whole) - (1 if (shift + len(secret)) % 5 else 0)]
        yield from (core, core.lower())


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
