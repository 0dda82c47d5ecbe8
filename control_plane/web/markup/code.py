"""Source code with classes for its colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from markupsafe import Markup, escape
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

MAX_CHARACTERS = 6000
"""Longer code is not coloured: each colour is an element of the page."""
KINDS = (
    (Comment, "hl-comment"),
    (Keyword, "hl-keyword"),
    (String, "hl-string"),
    (Number, "hl-number"),
    (Name.Function, "hl-name"),
    (Name.Class, "hl-name"),
    (Name.Tag, "hl-name"),
    (Generic.Deleted, "hl-deleted"),
    (Generic.Inserted, "hl-inserted"),
)
CLASSES = frozenset(name for _, name in KINDS)


def highlighted(code: str, language: str) -> Markup:
    """The code, coloured if the language is known."""
    if not language or len(code) > MAX_CHARACTERS:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code)
    return Markup("").join(_spans(lexer.get_tokens(code)))


def _spans(tokens: Iterable[tuple[_TokenType, str]]) -> Iterator[Markup]:
    for kind, group in groupby(tokens, key=lambda token: class_of(token[0])):
        text = "".join(each for _, each in group)
        yield Markup('<span class="{}">{}</span>').format(kind, text) if kind else escape(text)


def class_of(token: _TokenType) -> str:
    """The class of a token's colour; empty for one without."""
    return next((name for kind, name in KINDS if token in kind), "")
