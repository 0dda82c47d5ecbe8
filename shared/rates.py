"""Permits for model calls: what a run reports and asks, and what the control plane answers (docs/rate-limits.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shared.durations import roughly
from shared.wire import Wire

Kind = Literal["requests", "tokens", "input_tokens", "output_tokens"]
KINDS: tuple[Kind, ...] = ("requests", "tokens", "input_tokens", "output_tokens")
"""What an endpoint may limit for each minute. `tokens` are input and output together."""
MOST = 10**12
"""Numbers above it are nonsense."""
LONGEST_PAUSE = 900.0
"""Seconds. An endpoint that asks for a longer pause is tried again after this one: its answer may be wrong."""
MOST_REPORTS = 200

Amount = Annotated[float, Field(ge=0, le=MOST)]
Seconds = Annotated[float, Field(ge=0, le=86_400 * 366)]


class Tokens(Wire):
    """Tokens of one call, expected or used."""

    input_tokens: Amount = 0
    cached_tokens: Amount = 0
    """Those of the input that came from the endpoint's cache."""
    output_tokens: Amount = 0


class Rate(Wire):
    """One limit, as the headers of an answer name it."""

    kind: Kind
    limit: Amount
    remaining: Amount | None = None
    reset_s: Seconds | None = None
    """After this many seconds, everything is available again."""


class CallReport(Wire):
    """One call that a run made."""

    at: float | None = None
    """The permit's `at`; None: the call was made without a permit."""
    age_s: Seconds = 0
    """Seconds since it began."""
    expected: Tokens = Tokens()
    used: Tokens | None = None
    """None: it ended without a usage, and counts as expected."""
    made: bool = True
    """False: the permit was not used."""
    refused: bool = False
    """The endpoint answered 429."""
    retry_after_s: Seconds | None = None
    rates: tuple[Rate, ...] = Field((), max_length=len(KINDS))


class PermitRequest(Wire):
    """What a run asks before a call, or only reports."""

    provider: str = Field(max_length=255)
    """A name in its order's provider and fallbacks."""
    expected: Tokens | None = None
    """What its next call may need; None: there is no next call yet."""
    reports: tuple[CallReport, ...] = Field((), max_length=MOST_REPORTS)
    unended: int = Field(0, ge=0, le=MOST_REPORTS)
    """Calls that were made without a permit and have not ended."""


class ModelPermit(Wire):
    """The answer: a permit, or how long to wait; and how many calls may be made without asking."""

    granted: bool = False
    at: float = 0.0
    """Names the permit in its report."""
    wait_s: float = 0.0
    """Granted: make the call after this many seconds. Otherwise, ask again after them."""
    left_s: float = 0.0
    """How long the wait will probably last in all."""
    kind: Kind = "requests"
    limit: float = 0.0
    """The limit that decides, for each minute; 0: the endpoint asked for a pause."""
    position: int = 0
    waiting: int = 0
    """Number of runs that wait, with this one."""
    urgent: int = 0
    """Those of them that go first because they are more urgent."""
    limited: bool = True
    """False: no limit is known, and calls need no permit."""
    free_s: float = 0.0
    """For how long calls may be made without asking, as long as `free_calls` and `free_tokens` last."""
    free_calls: int = 0
    free_tokens: float = 0.0
    share: float = 0.0
    """Calls per minute that the run may make while the control plane does not answer; 0: any number."""


UNLIMITED = ModelPermit(limited=False, free_s=10.0, free_calls=MOST, free_tokens=MOST)


def wait_text(permit: ModelPermit, provider: str) -> str:
    """What a run waits for, for how long and why, for people."""
    if not permit.limit:
        why = "the endpoint refused a request (429) and is given a pause"
    else:
        why = f"{permit.limit:,.0f} {permit.kind.replace('_', ' ')} per minute are allowed"
    place = f", position {permit.position} of {permit.waiting}" if permit.waiting > 1 else ""
    urgent = f" ({permit.urgent} more urgent)" if permit.urgent else ""
    return f"waiting for provider {provider} for about {roughly(max(1.0, permit.left_s))}: {why}{place}{urgent}"
