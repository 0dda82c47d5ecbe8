"""Scores of drones: seconds until the work begins, and what counts against a drone."""

from __future__ import annotations

import pytest

from control_plane.orders.scores import SPREAD_S, Candidate, Usual, average, score
from shared.reason_text import score_text

USUAL = Usual(run_s=400.0, clone_s=100.0)


def candidate(
    slots: int = 2,
    outstanding: int = 0,
    *,
    has_mirror: bool = True,
    has_rival: bool = False,
    permit_s: float = 0.0,
    hours_left_s: float | None = None,
) -> Candidate:
    return Candidate("mila", slots, outstanding, has_mirror, has_rival, permit_s, hours_left_s)


def test_a_score_is_the_sum_of_its_parts_in_seconds() -> None:
    expected = [
        (candidate(), 0),
        (candidate(has_mirror=False), 100),
        (candidate(outstanding=1), 10),
        (candidate(outstanding=2), 200 + 20),
        (candidate(1, 3), 3 * 400 + 60),
        (candidate(has_rival=True), SPREAD_S),
        (candidate(permit_s=30), 30),
        (candidate(hours_left_s=400), 0),
        (candidate(hours_left_s=100), 300),
        (candidate(has_mirror=False, hours_left_s=0), 100 + 500),
    ]
    assert [score(of, USUAL).seconds for of, _ in expected] == pytest.approx([seconds for _, seconds in expected])
    assert (average(None, 50.0), average(100.0, 50.0)) == (50.0, 90.0)


def test_a_free_slot_goes_before_a_full_drone_with_the_repository_and_the_parts_are_told() -> None:
    slow_to_clone = Usual(run_s=10.0, clone_s=1000.0)
    free, full = candidate(has_mirror=False), candidate(outstanding=2)
    assert score(free, slow_to_clone) < score(full, slow_to_clone)
    assert score(free, slow_to_clone).seconds > score(full, slow_to_clone).seconds
    of = candidate(1, 1, has_mirror=False, has_rival=True, permit_s=7, hours_left_s=30)
    shown = score(of, USUAL).as_fact()
    assert (shown.drone, shown.free, shown.seconds) == ("mila", False, 1997)
    assert score_text(shown).startswith("mila 1997 s (queue 400 s, clone 100 s, shared machine 20 s, ")
