"""The limits that a request gives: some have a field of their own, and all can be given by name."""

from __future__ import annotations

import math
from typing import Any

from control_plane.contract.declarations.orders import OrderRequest, ResumeRequest
from shared.errors import Invalid
from shared.limits import LIMITS, LimitValue


def own_limits(request: OrderRequest | ResumeRequest) -> dict[str, LimitValue]:
    """The given limits by name. Raises Invalid for one that is given twice, or is not finite."""
    fields: dict[str, Any] = {each.name: getattr(request, each.name, None) for each in LIMITS}
    given = {name: value for name, value in fields.items() if value is not None}
    if twice := sorted(set(given) & set(request.limits)):
        raise Invalid(
            f"the limit {twice[0]} was given twice",
            code="E-ORDER-LIMIT",
            why=f"as {given[twice[0]]:g} and among the limits as {request.limits[twice[0]]:g}",
            next="leave one of them out",
        )
    for name, value in given.items():
        if not math.isfinite(value):
            raise Invalid(f"{name} must be a finite number", code="E-ORDER-LIMIT", next="0 means no limit")
    return {**given, **request.limits}
