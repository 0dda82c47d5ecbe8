"""Races: one prompt is given to several drones or models, and one result is taken."""

from __future__ import annotations

from typing import Literal

from shared.outcome import Verification
from shared.wire import Wire

Pick = Literal["first", "person", "judge"]
"""How a race is decided. `first`: the first order whose work is verified wins, and the others are canceled. `person`:
all run to their end, and a user takes one. `judge`: the same, but an order that compares their work takes one.
"""


class PushGrantRequest(Wire):
    """What a run says when it asks for permission to push."""

    verification: Verification = Verification.NOT_REACHED
