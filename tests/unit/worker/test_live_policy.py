"""A policy file that changes while the drone runs."""

from __future__ import annotations

from pathlib import Path

from drone.installation import policy
from drone.installation.spending import DaySpending
from drone.worker.live_policy import LivePolicy
from shared.clock import Clock, SystemClock
from tests.support.clocks import HandClock


def live(file: Path, clock: Clock | None = None) -> LivePolicy:
    clock = clock or SystemClock()
    spending = DaySpending(file.with_name("spending"), clock)
    return LivePolicy(policy.load(file), lambda _: None, clock, (file.parent,), spending)


def test_a_policy_that_becomes_unreadable_keeps_the_drone_from_taking_orders(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[commands]\nrefuse = ["sudo *"]\n')
    found = live(file)
    assert found.withheld() == ""

    file.write_text('[commands]\n\nrefuse = "sudo"\n')
    assert found.withheld().startswith(f"the policy file {file}, line 3, cannot be loaded: commands.refuse is invalid")
    assert found.current.orders.commands == ("sudo *",)

    file.write_text('[commands]\nrefuse = ["curl *"]\n')
    assert found.withheld() == ""
    assert found.current.orders.commands == ("curl *",)


def test_a_policy_that_is_written_later_applies_and_the_drone_says_since_when(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    found = live(file)
    before = found.age_s

    file.write_text('[when]\nfree_memory = "1000 TiB"\n')

    assert "of memory free (when.free_memory in " in found.withheld()
    assert found.withheld().endswith(f"{file}, line 2)")
    assert before <= found.age_s < 5


def test_no_orders_are_taken_once_the_day_s_money_is_spent_and_refused_ones_may_come_again_after_midnight(
    tmp_path: Path,
) -> None:
    file, clock = tmp_path / "policy.toml", HandClock()
    file.write_text("[spend]\nusd_per_day = 3\n")
    found = live(file, clock)
    assert found.withheld() == ""

    DaySpending(tmp_path / "spending", clock).add(3.004)
    clock.passed += 60
    assert found.withheld() == f"3.00 of 3.00 USD spent today (spend.usd_per_day in {file}, line 2)"
    assert found.age_s == 60

    clock.passed += 24 * 3600
    assert found.withheld() == ""
    assert found.age_s == 0
