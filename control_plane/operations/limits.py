"""The limits that can be set."""

from __future__ import annotations

from control_plane.contract.declarations import limits as declared
from control_plane.contract.declarations.limits import LimitDocument
from control_plane.core import Caller, Core
from control_plane.operations.gateway import performs
from shared.limits import LIMITS


@performs(declared.LIST)
def list_(_core: Core, _caller: Caller) -> list[LimitDocument]:
    """All limits, in the order in which documents show them."""
    return [
        LimitDocument(
            name=each.name, help=each.help, unit=each.unit, default=each.default, least=each.least, most=each.most
        )
        for each in LIMITS
    ]
