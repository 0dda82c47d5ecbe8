"""When a budget's days and months begin, in its own time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

Per = Literal["day", "month", "total"] | str
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
"""The only period of a budget in total begins here."""


def start_of(per: Per, zone: str, moment: datetime) -> datetime:
    """The beginning of the period that contains `moment`, in UTC."""
    if per == "total":
        return ALWAYS
    local = moment.astimezone(ZoneInfo(zone))
    first = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return (first.replace(day=1) if per == "month" else first).astimezone(UTC)


def end_of(per: Per, zone: str, moment: datetime) -> datetime | None:
    """The beginning of the next period, in UTC; None for a budget in total, which never begins anew."""
    if per == "total":
        return None
    first = start_of(per, zone, moment).astimezone(ZoneInfo(zone))
    # Far enough into the next period, whatever the zone's clocks do meanwhile; then back to its beginning.
    inside = first.replace(hour=12) + timedelta(days=32 - first.day if per == "month" else 1)
    return start_of(per, zone, inside)
