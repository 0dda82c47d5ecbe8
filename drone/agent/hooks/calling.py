"""Calls of foreign code: in every case, the caller gets an answer or a CallFailed."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Literal

from shared.redaction import last_part, shortened

Calling = Callable[[Callable[[], object]], object]
"""Calls the given function and returns its answer. Raises only CallFailed."""

Why = Literal["raised", "overdue", "run_ends"]

DETAIL = 4000
"""Characters of a traceback that are kept; its end is the most informative part."""

_here = threading.local()


class WrongAnswer(Exception):
    """Foreign code returned an unusable value; the text says what was expected."""


class CallFailed(Exception):
    """Foreign code gave no answer: it raised, took too long, or was abandoned because the run has to end."""

    def __init__(self, what: str, *, why: Why = "raised", detail: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.detail = detail

    @classmethod
    def by(cls, error: BaseException) -> CallFailed:
        """Describe an error of foreign code, in short and in full."""
        if isinstance(error, WrongAnswer):
            return cls(str(error))
        try:
            whole = "".join(traceback.format_exception(error))
        except Exception:  # noqa: BLE001 - a foreign class whose own text fails
            whole = type(error).__name__
        return cls(described(error), detail=plain(last_part(whole, DETAIL)))


def described(error: BaseException) -> str:
    """Describe an error in one line: its type, and the first line of its text."""
    try:
        text = shortened(str(error).strip().partition("\n")[0], 300).rstrip(".")
    except Exception:  # noqa: BLE001 - a foreign class whose own text fails
        text = ""
    return plain(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def plain(text: str) -> str:
    """Make foreign text safe to record: no lone surrogates and no NUL, which neither journal nor database can store."""
    return text.encode(errors="replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")


def inside() -> bool:
    """Whether this thread is currently running foreign code."""
    return getattr(_here, "depth", 0) > 0


def at_once(act: Callable[[], object]) -> object:
    """Call in this thread, without a time limit."""
    _here.depth = getattr(_here, "depth", 0) + 1
    try:
        return act()
    except BaseException as error:
        raise CallFailed.by(error) from error
    finally:
        _here.depth -= 1
