"""Conditions on texts, for searches: signs that mean something to the database mean themselves."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, or_
from sqlalchemy.orm import InstrumentedAttribute


def contains_words(text: str, *columns: InstrumentedAttribute[Any]) -> ColumnElement[bool]:
    """Whether each word of the text is in one of the columns, in any case."""
    words = text.split() or [""]
    return and_(*(or_(*(column.icontains(word, autoescape=True) for column in columns)) for word in words))


def begins(column: InstrumentedAttribute[Any], text: str) -> ColumnElement[bool]:
    """Whether the column begins with the text."""
    return column.startswith(text.strip(), autoescape=True)
