"""The codes with which calls are refused, so that a test can compare many of them at once."""

from __future__ import annotations

from collections.abc import Callable

from shared.errors import FleetError


def code_of(act: Callable[[], object]) -> str:
    """The code of the error that `act` raises, or '' if it raises none."""
    try:
        act()
    except FleetError as refusal:
        return refusal.code
    return ""
