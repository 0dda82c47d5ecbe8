"""Scores drones for an order: how long until its work can begin on each, and what counts against it, all in seconds.

Pure, so that the simulation in `tests/bench` runs this code. See `docs/decisions/0023-scores.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shared.reasons import DroneScore

RUN_S = 300.0
"""How long a run of a project takes, until one is known."""
CLONE_S = 60.0
"""How long its repository takes to clone, until that is known."""
NEWEST = 0.2
"""The weight of the newest value in the average of a project."""
SHARED = 0.05
"""The part of a run's time that is lost if another run takes each slot beside it."""
SPREAD_S = 600.0
"""What another order of the same race on the drone counts: one machine must not decide a race."""


@dataclass(frozen=True)
class Usual:
    """What runs of a project usually take, in seconds."""

    run_s: float = RUN_S
    clone_s: float = CLONE_S


def usual_of(run_s: float | None, clone_s: float | None) -> Usual:
    """From a project's averages, where it has any."""
    return Usual(RUN_S if run_s is None else run_s, CLONE_S if clone_s is None else clone_s)


class Candidate(NamedTuple):
    """What is known of a drone that may take the order."""

    drone: str
    """Its name."""
    slots: int
    outstanding: int
    has_mirror: bool = False
    has_rival: bool = False
    """It has another order of the same race."""
    permit_s: float = 0.0
    """Until the rate limit of its own key allows another call."""
    hours_left_s: float | None = None
    """Until its owner's hours end; None: they do not."""


class Score(NamedTuple):
    """Sorts by preference: a free slot first, as it is certain while the end of other runs is a guess; then seconds."""

    is_full: bool
    seconds: float
    drone: str
    queue_s: float
    clone_s: float
    share_s: float
    spread_s: float
    permit_s: float
    hours_s: float

    def as_fact(self) -> DroneScore:
        """As it is stored with the placement."""
        rounded = {name: round(getattr(self, name), 1) for name in self._fields if name not in {"is_full", "drone"}}
        return DroneScore(drone=self.drone, free=not self.is_full, **rounded)


def score(candidate: Candidate, usual: Usual) -> Score:
    """The score of a drone; the lowest is the best."""
    drone, slots, outstanding, has_mirror, has_rival, permit_s, hours_left_s = candidate
    full = outstanding - slots + 1
    queue_s = usual.run_s * full / slots if full > 0 else 0.0
    clone_s = 0.0 if has_mirror else usual.clone_s
    share_s = SHARED * usual.run_s * outstanding / slots
    spread_s = SPREAD_S if has_rival else 0.0
    # The run may go on after the hours, at the cost of the owner who works then; in the queue it would not begin.
    hours_s = max(0.0, queue_s + clone_s + usual.run_s - hours_left_s) if hours_left_s is not None else 0.0
    seconds = queue_s + clone_s + share_s + spread_s + permit_s + hours_s
    return Score(full > 0, seconds, drone, queue_s, clone_s, share_s, spread_s, permit_s, hours_s)


def average(before: float | None, newest: float) -> float:
    """A project's average with one more value."""
    return newest if before is None else before + NEWEST * (newest - before)
