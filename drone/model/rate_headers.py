"""Limits per minute as endpoints name them in the headers of their answers: OpenAI's names and Anthropic's.

A header that is missing, or whose value cannot be true, is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from shared.rates import MOST, Kind, Rate

_OPENAI: Mapping[Kind, str] = {"requests": "requests", "tokens": "tokens"}
_ANTHROPIC: Mapping[Kind, str] = {
    "requests": "requests",
    "tokens": "tokens",
    "input_tokens": "input-tokens",
    "output_tokens": "output-tokens",
}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_UNITS = (86_400.0, 3600.0, 60.0, 1.0, 0.001)
_LONGEST_RESET = 86_400.0


def rates_in(headers: Mapping[str, Any], now: datetime) -> tuple[Rate, ...]:
    """The limits that these headers name; their names are in lower case."""
    found = {rate.kind: rate for rate in _rates(headers, now)}
    return tuple(found.values())


def _rates(headers: Mapping[str, Any], now: datetime) -> Iterator[Rate]:
    # Anthropic's come last: litellm copies some of them to OpenAI's names.
    for kinds, pattern in ((_OPENAI, "x-ratelimit-{part}-{name}"), (_ANTHROPIC, "anthropic-ratelimit-{name}-{part}")):
        for kind, name in kinds.items():
            said = {part: headers.get(pattern.format(part=part, name=name)) for part in ("limit", "remaining", "reset")}
            limit = _amount(said["limit"])
            if limit:
                remaining = _amount(said["remaining"])
                yield Rate(kind=kind, limit=limit, remaining=remaining, reset_s=_reset(said["reset"], now))


def _amount(value: Any) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if isfinite(number) and 0 <= number <= MOST else None


def _reset(value: Any, now: datetime) -> float | None:
    """Seconds, from `6m0s`, `20ms`, a number of seconds, or a time."""
    text = str(value or "").strip()[:64]
    seconds = _amount(text)
    if seconds is None and text and (parts := _DURATION.fullmatch(text)):
        seconds = sum(float(part) * unit for part, unit in zip(parts.groups(), _UNITS, strict=True) if part)
    if seconds is None:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return None
        seconds = max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
    return seconds if seconds <= _LONGEST_RESET else None
