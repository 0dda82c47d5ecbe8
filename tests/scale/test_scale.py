"""The scale simulation: every order is done exactly once, whatever the speed of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scale.fleet import ScaleSize
from tests.scale.simulation import simulate

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(("orders", "own_users"), [(100, False), (300, True)], ids=["shared users", "own users"])
def test_fifty_drones_do_every_order_exactly_once(tmp_path: Path, orders: int, own_users: bool) -> None:
    size = ScaleSize(drones=50, orders=orders, own_users=own_users, leaving=0.5)
    outcome = simulate(size, tmp_path / "fleet")
    # A drone may be shown as silent for a moment on a machine that is busy with other work.
    promises = {what: count for what, count in outcome.promises.items() if what != "false silences"}
    assert promises == dict.fromkeys(promises, 0), outcome.figures
    assert outcome.samples[-1].ended == orders


def test_two_hundred_drones_do_three_thousand_orders_without_growing(tmp_path: Path) -> None:
    outcome = simulate(ScaleSize(drones=200, orders=3000, limit_s=1500.0), tmp_path / "fleet")
    assert outcome.broken() == [], outcome.figures
    begun = next(sample for sample in outcome.samples if sample.ended >= 500)
    for name in ("api", "supervisor", "collector-1"):
        before, after = begun.usage[name], outcome.samples[-1].usage[name]
        assert after.rss_mb <= before.rss_mb * 1.25, name
        assert after.open_files <= before.open_files + 10, name
