"""How long the background work waits for what, in seconds; tests hand in shorter ones."""

from __future__ import annotations

from dataclasses import dataclass

from shared.states import BEAT_EVERY, OFFLINE_AFTER

PAUSES = (3.0, 12.0, 30.0, 60.0)
"""Before an order is tried again that failed by the fleet's fault: once, twice in a row, …"""


@dataclass(frozen=True)
class Timings:
    """The design's numbers."""

    poll: float = 0.5
    """Between looks at the database where nobody said that there is work."""
    sweep: float = 2.0
    """Between looks at every stream, for what pub/sub did not tell."""
    own_beat: float = BEAT_EVERY.total_seconds()
    """Between the supervisor's own beats."""
    lost_after: float = OFFLINE_AFTER.total_seconds()
    """Silence after which a run is lost."""
    unclaimed_after: float = 15.0
    """An order that a free drone has not claimed by then is published anew."""
    beat_age: float = BEAT_EVERY.total_seconds()
    """No beat is older than this when it is written: one that is written so long after something was sent after it."""
    rebalance_after: float = 3.0
    """An order that a full drone has not claimed by then goes to one with a free slot."""
    owner_ttl: float = 15.0
    """A lease on a stream or on leadership that is not renewed ends after this."""
    users_every: float = 30.0
    """Between checks that every drone has its Redis user, and that its inbox in Redis is whole."""
    tail_after: float = 10.0
    """A beat that names a later event than is stored: so long it may still be on its way."""
    resend_every: float = 30.0
    """Between two requests for the same missing events."""
    hello_wait: float = 30.0
    """A drone that was started again recorded more of a run than is stored: so long its loss waits for the rest."""
    gap_after: float = 600.0
    """Events that did not come by then are written off as a gap."""
    clean_every: float = 600.0
    pauses: tuple[float, ...] = PAUSES
