"""Foreign text in which nothing is hidden: characters that overwrite, reorder or conceal text get a visible mark.

A person who reads a patch or approves a command must see all of it. A carriage return, a bidirectional override or a
zero-width character makes a page or a terminal show something else than what is stored and executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero-width, line separators, bidirectional controls
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # the last range: tags, variation selectors
    r"\ud800-\udfff"
)
_HIDDEN = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
JOINERS = "\u200c\u200d"
_PRESENTATION = "\ufe0e\ufe0f"
_SYMBOLS = "#*0-9\u00a9\u00ae\u2030-\u2bff\u3030-\u3299\U0001f000-\U0001faff"
_JOINED = re.compile("[\u0590-\u109f\u1780-\u17ff\ufe0f\u2190-\u2bff\U0001f000-\U0001faff]")
"""Scripts and symbols whose glyphs depend on joiners (Unicode Standard Annex 31, section 2.3)."""
_SYMBOL = re.compile(f"[{_SYMBOLS}]")


def visible(text: str) -> str:
    """The text with a mark for each character that is not visible itself; tab and line feed stay.

    A control character is shown by its picture (`␍`), any other by its code point (`⟨U+202E⟩`). Joiners within Arabic
    and Indic words and within emoji stay: there, they shape a glyph.
    """
    return _HIDDEN.sub(_mark, text)


def visible_pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of `visible(text)`, each with whether it is a mark."""
    end = 0
    for found in _HIDDEN.finditer(text):
        mark = _mark(found)
        if mark == found.group():
            continue
        if found.start() > end:
            yield text[end : found.start()], False
        yield mark, True
        end = found.end()
    if end < len(text):
        yield text[end:], False


def visible_prose(text: str) -> str:
    """As `visible`, for messages of people and models: a line may also end in CR LF."""
    return visible(text.replace("\r\n", "\n"))


def _mark(found: re.Match[str]) -> str:
    character, text, (start, end) = found.group(), found.string, found.span()
    if _is_in_place(character, text[max(0, start - 1) : start], text[end : end + 1]):
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if code == 0x7F else f"⟨U+{code:04X}⟩"


def _is_in_place(character: str, before: str, after: str) -> bool:
    if character in JOINERS:
        return bool(_JOINED.match(before) and _JOINED.match(after))
    return character in _PRESENTATION and bool(_SYMBOL.match(before))
