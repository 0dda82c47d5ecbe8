"""The scale simulation: every order is done exactly once, whatever the speed of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scale.simulation import Outcome, simulate
from tests.scale.size import ScaleSize

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
LIMIT_S = 600.0
"""Wide, for a machine that is busy with other work."""


def kept(outcome: Outcome) -> tuple[int, int, int, int]:
    """What must be 0: orders lost, claimed twice, with an incomplete transcript, and runs given up."""
    return outcome.lost, outcome.twice, outcome.incomplete, outcome.false_losses


def test_fifty_drones_do_every_order_exactly_once(tmp_path: Path) -> None:
    outcome, samples = simulate(ScaleSize(drones=50, orders=100, leaving=0.5, limit_s=LIMIT_S), tmp_path / "fleet")
    assert kept(outcome) == (0, 0, 0, 0), outcome
    assert samples[-1].ended == 100


def test_drones_with_users_of_their_own_do_every_order_exactly_once(tmp_path: Path) -> None:
    size = ScaleSize(drones=50, orders=300, own_users=True, leaving=0.5, limit_s=LIMIT_S)
    outcome, _ = simulate(size, tmp_path / "fleet")
    assert kept(outcome) == (0, 0, 0, 0), outcome


@pytest.mark.timeout(1800)
def test_two_hundred_drones_do_three_thousand_orders_without_growing(tmp_path: Path) -> None:
    size = ScaleSize(drones=200, orders=3000, limit_s=1500.0)
    outcome, samples = simulate(size, tmp_path / "fleet")
    assert outcome.broken() == [], outcome
    begun = next(sample for sample in samples if sample.ended >= 500)
    for name in ("api", "supervisor", "collector-1"):
        before, after = begun.usage[name], samples[-1].usage[name]
        assert after.rss_mb <= before.rss_mb * 1.25, name
        assert after.open_files <= before.open_files + 10, name
