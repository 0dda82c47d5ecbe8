"""Durations in human-readable form."""

from __future__ import annotations


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
