"""Scores against the least load and against taking turns, simulated: less waiting, fewer clones, no longer in all."""

from __future__ import annotations

import pytest

from tests.bench.placement_simulation import compared

pytestmark = pytest.mark.bench


@pytest.mark.parametrize(("used", "clones"), [(0.6, 0.5), (0.9, 0.8), (1.1, 0.95)])
def test_scores_avoid_clones_and_nothing_waits_longer_for_it(used: float, clones: float) -> None:
    found = compared(orders=2000, drones=40, used=used)
    scores, least = found["scores"], found["least load"]
    assert scores.clones <= clones * least.clones
    assert scores.wait_mean_s <= least.wait_mean_s
    assert scores.makespan_s <= 1.02 * min(least.makespan_s, found["turns"].makespan_s)
