"""What a drone's models cost today, and when its owner's limit is used up."""

from __future__ import annotations

import multiprocessing
from datetime import timedelta
from pathlib import Path

import pytest

from drone.installation.policy import Policy, load
from drone.installation.spending import DaySpending
from shared.clock import SystemClock
from shared.errors import Forbidden
from tests.support.clocks import HandClock

LIMITED = """[spend]
usd_per_day = 2.5
unpriced = ["http://127.0.0.1:8000"]
"""


@pytest.fixture
def limited(tmp_path: Path) -> Policy:
    file = tmp_path / "policy.toml"
    file.write_text(LIMITED)
    return load(file)


def spend_a_hundred_times(file: Path) -> None:
    for _ in range(100):
        DaySpending(file, SystemClock()).add(0.01)


def test_costs_are_added_up_until_midnight(tmp_path: Path) -> None:
    clock = HandClock()
    spending = DaySpending(tmp_path / "spending", clock)
    assert spending.today() == 0

    spending.add(1.25)
    spending.add(0.000001)
    same_day = DaySpending(tmp_path / "spending", clock).today()
    clock.at += timedelta(days=1)

    assert (same_day, spending.today()) == (1.250001, 0)
    spending.add(0.5)
    assert spending.today() == 0.5


def test_no_cost_of_a_run_beside_others_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "spending"
    runs = [multiprocessing.get_context("fork").Process(target=spend_a_hundred_times, args=(file,)) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()

    assert DaySpending(file, SystemClock()).today() == pytest.approx(4)


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    clock = HandClock()
    file = tmp_path / "spending"
    file.write_text(f"{clock.now().astimezone().date()} much\n" + "x" * 200)
    spending = DaySpending(file, clock)

    assert spending.today() == 0
    spending.add(2)
    assert spending.today() == 2


def test_a_call_is_refused_with_the_line_of_the_policy_once_the_limit_is_reached(limited: Policy) -> None:
    limited.check_spent(2.49)

    with pytest.raises(Forbidden) as refusal:
        limited.check_spent(2.5)

    assert refusal.value.what == "this drone has spent 2.50 of 2.50 USD today, as much as its policy allows"
    Policy().check_spent(1e9)
    assert (refusal.value.code, refusal.value.why) == ("E-POLICY-SPEND", f"spend.usd_per_day in {limited.file}, line 2")


def test_a_model_of_unknown_price_is_refused_unless_its_address_is_listed(limited: Policy) -> None:
    for api_base in (None, "http://127.0.0.1:8001/v1", "https://127.0.0.1:8000"):
        limited.check_unpriced("openai/mine", "http://127.0.0.1:8000/v1")
        Policy().check_unpriced("openai/mine", None)

        with pytest.raises(Forbidden) as refusal:
            limited.check_unpriced("openai/mine", api_base)

        assert "the price of openai/mine is unknown" in refusal.value.what, api_base
        assert str(refusal.value.next).startswith("on the drone: unpriced = ["), api_base
