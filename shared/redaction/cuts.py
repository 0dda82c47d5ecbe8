"""Shortens foreign text: secrets go first, because half a secret would not be recognized afterwards."""

from __future__ import annotations

from collections.abc import Iterable

from shared.redaction.redactor import Redactor

_MARGIN = 4096
"""Characters beside a cut in which the rest of a secret is looked for."""
_OF_PROCESS = [Redactor()]


def know(secrets: Iterable[str]) -> Redactor:
    """Make these the known secrets of this process, once at its start: errors are shortened wherever they occur."""
    _OF_PROCESS[0] = Redactor(secrets)
    return _OF_PROCESS[0]


def known() -> Redactor:
    """The redactor of this process; before `know`, it finds well-known shapes alone."""
    return _OF_PROCESS[0]


def shortened(text: str, length: int, *, end: str = "") -> str:
    """The beginning of the text without secrets; `end` follows if the text was longer, and counts."""
    shown = known().text(text)
    return shown if len(shown) <= length else shown[: length - len(end)] + end


def cut_short(text: str, length: int) -> str:
    """The beginning of the text as it is; shorter by a secret that the cut would divide."""
    divided = [start for start, end in known().spans(text[: length + _MARGIN]) if start < length < end]
    return text[: min([length, *divided])]


def cut_off(text: str, length: int) -> str:
    """The end of the text as it is; shorter by a secret that the cut would divide."""
    first, margin = max(0, len(text) - length), max(0, len(text) - length - _MARGIN)
    divided = [margin + end for start, end in known().spans(text[margin:]) if margin + start < first < margin + end]
    return text[max([first, *divided]) :]


def last_part(text: str, length: int) -> str:
    """The end of the text without secrets."""
    return known().text(text)[-length:]
