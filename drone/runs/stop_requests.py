"""Why a run is to end, and which of several reasons counts: one rule for the worker and the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

WishKind = Literal["cancel", "stale", "terminate", "overgrown", "stalled", "stop"]
"""The order was canceled; another run holds it now; an operator ended the run; its process used too much memory; it
made no progress for too long; the drone stops, and the order goes back to the queue. The heaviest comes first."""
_HEAVIEST_FIRST = get_args(WishKind)


@dataclass(frozen=True)
class Wish:
    """The wish to end a run, and the reason in words."""

    kind: WishKind
    reason: str

    def outweighs(self, other: Wish | None) -> bool:
        """Whether this wish replaces `other`, which came first.

        Of several wishes the heaviest counts, and of two of the same kind the first: a stop gives the order back and a
        cancel ends it, so a cancel replaces a stop, and a stop never replaces a cancel.
        """
        return other is None or _HEAVIEST_FIRST.index(self.kind) < _HEAVIEST_FIRST.index(other.kind)
