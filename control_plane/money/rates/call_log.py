"""What the calls of the last minute used, and when the next one fits below the limits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from shared.rates import KINDS, Kind, Tokens

MINUTE = 61.0
"""Seconds for which a call counts: one more than a minute, because calls reach the endpoint with different delays."""
PART = 10.25
"""A sixth of it. No more than a sixth of a limit is used in it: then an urgent call never waits for a whole minute, and
endpoints that enforce a limit in shorter intervals do not refuse."""
FEWEST_IN_PART = 2
GRAIN = 0.25
"""Calls of the same quarter of a second are counted together, as if all were made with the last of them."""
KEPT = 90.0
FUTURE = 5.0
"""Seconds. A later time was written before the clock was set back; without this bound, it would stop all calls."""

Amounts = tuple[float, float, float, float]
"""One number for each of KINDS."""
Entry = tuple[float, float, float, float, float]
"""A time, and the amounts."""
Limits = Mapping[Kind, float]


@dataclass(frozen=True)
class Slot:
    """The earliest time for a call, and the limit that decides it; None: no limit delays it."""

    at: float
    kind: Kind | None = None


def amounts_of(tokens: Tokens, *, requests: float = 1.0) -> Amounts:
    """The amounts of one call. Input from the cache counts towards `tokens`, and not towards `input_tokens`."""
    fresh = max(0.0, tokens.input_tokens - tokens.cached_tokens)
    return requests, tokens.input_tokens + tokens.output_tokens, fresh, tokens.output_tokens


def add(log: list[Entry], at: float, amounts: Sequence[float]) -> None:
    """Count a call at this time. Negative amounts correct what was counted before; nothing falls below 0."""
    place = bisect_right(log, at // GRAIN, key=lambda entry: entry[0] // GRAIN)
    found = log[place - 1] if place and log[place - 1][0] // GRAIN == at // GRAIN else None
    if found is None and max(amounts) <= 0:
        return
    if found is None:
        log.insert(place, (at, *_floored(amounts)))
    else:
        log[place - 1] = (max(at, found[0]), *_floored([a + b for a, b in zip(found[1:], amounts, strict=True)]))


def forget(log: list[Entry], now: float) -> None:
    """Remove the calls that no longer matter, and those that were not made yet by this clock."""
    del log[bisect_right(log, now + FUTURE, key=lambda entry: entry[0]) :]
    del log[: bisect_right(log, now - KEPT, key=lambda entry: entry[0])]


def used(log: Iterable[Entry], kind: Kind, since: float, until: float) -> float:
    """The amount used after `since` and up to `until`."""
    index = KINDS.index(kind) + 1
    return sum(entry[index] for entry in log if since < entry[0] <= until)


def next_slot(log: Sequence[Entry], limits: Limits, need: Amounts, earliest: float, reserved: Limits) -> Slot:
    """When a call that needs this much fits below the limits and beside what is reserved, `earliest` or later.

    A call that needs more than a limit allows fits once nothing else counts: otherwise, it would never be made.
    """
    best = Slot(earliest)
    for kind, limit in limits.items():
        wanted = need[KINDS.index(kind)]
        if wanted <= 0:
            continue
        part = part_of(kind, limit)
        # Tokens may exceed a part with the last call: otherwise, calls that need more than half of it would waste it.
        allowed = part - min(wanted, part) if kind == "requests" else part - 1
        for span, most in ((MINUTE, limit - min(wanted, limit)), (PART, allowed)):
            rule = (span, max(0.0, most - reserved.get(kind, 0.0)))
            at = _fits_at(log, kind, rule, best.at)
            if at > best.at:
                best = Slot(at, kind)
    return best


def part_of(kind: Kind, limit: float) -> float:
    """How much of a limit may be used in a sixth of a minute."""
    return max(ceil(limit / 6), FEWEST_IN_PART if kind == "requests" else 1)


def _fits_at(log: Sequence[Entry], kind: Kind, rule: tuple[float, float], earliest: float) -> float:
    """When no more than `rule[1]` was used in the last `rule[0]` seconds."""
    span, most = rule
    index = KINDS.index(kind) + 1
    start = bisect_right(log, earliest - span, key=lambda entry: entry[0])
    total = sum(entry[index] for entry in log[start:])
    at = earliest
    for entry in log[start:]:
        if total <= most:
            break
        total -= entry[index]
        at = entry[0] + span
    return at


def _floored(amounts: Iterable[float]) -> Amounts:
    requests, tokens, fresh, out = (max(0.0, amount) for amount in amounts)
    return requests, tokens, fresh, out
