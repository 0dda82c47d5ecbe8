"""Limits in requests and documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import AfterValidator

from control_plane.contract.documents.base import Document
from shared.limits import LIMITS, LimitLevel, LimitValue, checked_limits
from shared.work_order import Limits

LimitsGiven = AfterValidator(checked_limits)
"""Of a field of limits by name: unknown names and values out of bounds are refused."""


class EffectiveLimit(Document):
    """The value of one limit of an order."""

    value: LimitValue
    source: LimitLevel
    """Where it is set."""


def effective_limits(values: Mapping[str, Any], sources: Mapping[str, LimitLevel]) -> dict[str, EffectiveLimit]:
    """Each limit with its value and its source."""
    limits = Limits.model_validate(values)
    return {
        each.name: EffectiveLimit(value=getattr(limits, each.name), source=sources.get(each.name, "default"))
        for each in LIMITS
    }
