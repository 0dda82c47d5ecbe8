"""Intervals and time limits of the background work, in seconds; tests pass shorter ones."""

from __future__ import annotations

from dataclasses import dataclass

from shared.states import BEAT_EVERY, OFFLINE_AFTER

PAUSES = (3.0, 12.0, 30.0, 60.0)
"""Before an order that failed through the fleet's fault is retried: after one failure, two in a row, …"""


@dataclass(frozen=True)
class Timings:
    """The values from the design."""

    poll: float = 0.5
    """Between polls of the database when no wake-up arrives."""
    sweep: float = 2.0
    """Between checks of every stream, for events that pub/sub did not announce."""
    own_beat: float = BEAT_EVERY.total_seconds()
    """Between the supervisor's own beats."""
    lost_after: float = OFFLINE_AFTER.total_seconds()
    """Silence after which a run is lost."""
    unclaimed_after: float = 15.0
    """An order that a free drone has not claimed within this time is published again."""
    beat_age: float = BEAT_EVERY.total_seconds()
    """A beat is at most this old when it is written: one written this long after an event was sent after it."""
    gather: float = 0.25
    """After a write of beats: those that arrive meanwhile are written together, and each alone would cost 13 times as
    much."""
    rebalance_after: float = 3.0
    """An order that a full drone has not claimed within this time goes to one with a free slot."""
    owner_ttl: float = 15.0
    """A lease on a stream or on leadership expires after this time unless it is renewed."""
    users_every: float = 30.0
    """Between checks that every drone has its Redis user, and that its inbox in Redis is complete."""
    quota_every: float = 2.0
    """Between checks of how much of the broker's memory each drone holds."""
    quota_pause: float = 60.0
    """A drone that exceeded its quota gets its rights back after this time at the earliest."""
    tail_after: float = 10.0
    """How long an event that a beat names, but that is not stored, may still be on its way."""
    resend_every: float = 30.0
    """Between two requests for the same missing events."""
    hello_wait: float = 30.0
    """How long the loss of a run waits for the rest, if a restarted drone recorded more of the run than is stored."""
    gap_after: float = 600.0
    """Events that have not arrived by then are written off as a gap."""
    suspend_after: float = 300.0
    """A run that waits for a person may keep its slot this long while other orders wait for one."""
    clean_every: float = 600.0
    settle_every: float = 30.0
    """Between searches for reserved money of runs whose end said nothing about it."""
    recount_every: float = 60.0
    """Between counts of what concerns young budgets, in which a concurrent grant may be missing."""
    seal_every: float = 60.0
    """Between signatures under the audit log's newest record."""
    stop_within: float = 1.0
    """A listener without messages notices after this time that it is to stop."""
    pauses: tuple[float, ...] = PAUSES
