"""The refusal of a change that was based on an outdated version; it carries what is stored now."""

from __future__ import annotations

from typing import Any

from shared.errors import Conflict


class StaleWrite(Conflict):
    """Another user, or another window of the same user, changed the object in the meantime."""

    def __init__(self, what: str, *, code: str, next: str, stored: dict[str, Any]) -> None:
        """`stored`: the document as it is now, part of the answer."""
        super().__init__(what, code=code, next=next)
        self.stored = stored
