"""Durations in human-readable form."""

from __future__ import annotations

import re
from datetime import timedelta

from shared.errors import Invalid

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def kept_for(days: int) -> timedelta:
    """For how long something is kept: a hundred years stand for more, as there are no dates before the first year."""
    return timedelta(days=min(days, 36_500))


def duration_label(milliseconds: int) -> str:
    """`850 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min`."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def clock_label(seconds: float) -> str:
    """As a clock shows it: `0:07`, `12:40`, `2:03:05`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def roughly(seconds: float) -> str:
    """A duration that is still growing, in one or two units: `45 s`, `3 min`, `2 h 3 min`."""
    if seconds < 60:
        return f"{max(0, int(seconds))} s"
    hours, minutes = divmod(int(seconds // 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def in_units(seconds: int) -> str:
    """As `parse_duration` reads it: `90s`, `30m`, `7d`; `0` for zero."""
    fits = (unit for unit in reversed(_UNITS) if seconds and seconds % _UNITS[unit] == 0)
    unit = next(fits, "")
    return f"{seconds // _UNITS[unit]}{unit}" if unit else "0"


def parse_duration(text: str, example: str = "--expires 1h") -> int:
    """`90s`, `30m`, `1h`, `7d` as seconds. Raises Invalid for anything else; `example`: an option to show then."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text.strip())
    if not match or int(match[1]) == 0:
        raise Invalid(f"{text[:40]!r} is not a duration", code="E-DURATION", next=example)
    return int(match[1]) * _UNITS[match[2]]
