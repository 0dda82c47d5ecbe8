"""Trailers of commits and pull requests: the ticket, the model that assisted, and the order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

Trailer = Literal["Assisted-by", "Fleet-Order"]
TRAILERS: tuple[Trailer, ...] = get_args(Trailer)
DEFAULT: tuple[Trailer, ...] = ("Fleet-Order",)
"""Used if nothing was chosen: work always names its order."""
_OURS = re.compile(rf"^(?:{'|'.join(TRAILERS)}): \S", re.MULTILINE)


def trailers_of(chosen: Sequence[str], *, model: str, order_id: str, ticket: str | None) -> list[str]:
    """The lines, in a fixed order; those of `DEFAULT` if nothing is chosen. Unknown trailers are left out.

    A ticket is always named, so that users find the work by it.
    """
    wanted = chosen or DEFAULT
    lines = {
        "Assisted-by": f"Assisted-by: {_one_line(model)} via Dronefleet",
        "Fleet-Order": f"Fleet-Order: {order_id}",
    }
    named = [f"Refs: {_one_line(ticket)}"] if ticket else []
    return [*named, *(line for name, line in lines.items() if name in wanted)]


def has_trailers(message: str) -> bool:
    """Whether the last paragraph of a message already has one of our trailers."""
    return _OURS.search(message.rstrip().rpartition("\n\n")[2]) is not None


def _one_line(text: str) -> str:
    return " ".join(text.split()) or "a model"
