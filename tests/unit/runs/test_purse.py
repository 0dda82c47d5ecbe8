"""The money of a run: no call without a reservation, none above the limit, and nothing kept that is not needed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drone.runs.kept_spending import KeptSpending, kept_spending
from drone.runs.purse import Need, Purse
from shared.budgets import Allowance, AllowanceRequest, ModelPrice, Money
from shared.errors import Conflict, LimitsExceeded, NotFound, Preempted, Unreachable
from tests.support import wait_until

BOUNDED = Money(bounded=True)


def need(least: float, wanted: float) -> Need:
    return Need("openai/x", least, wanted, ModelPrice(model="openai/x"))


@dataclass
class Source:
    """An account with a fixed sum, which grants what is asked for while it lasts."""

    left: float = 10.0
    bounded: bool = True
    granted: float = 0.0
    requests: list[AllowanceRequest] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    waits: int = 0

    def allow(self, request: AllowanceRequest) -> Allowance:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        if request.keep is not None:
            self.left, self.granted = self.left + self.granted - request.keep, request.keep
        if self.waits and request.least > self.granted:
            self.waits -= 1
            return Allowance(granted=self.granted, bounded=True, wait_s=1.0, waits_for="the budget of project web")
        if request.least - self.granted > self.left:
            return Allowance(granted=self.granted, bounded=True, refused="nothing left")
        more = max(0.0, min(request.wanted - self.granted, self.left))
        self.left, self.granted = self.left - more, self.granted + more
        return Allowance(granted=self.granted, bounded=self.bounded)


class Pauses(list[str]):
    """What the run waited for, which its drone ends at the third time."""

    def __call__(self, _seconds: float, why: str) -> None:
        self.append(why)
        if len(self) >= 3:
            raise Preempted


def no_pause(_seconds: float, why: str) -> None:
    pytest.fail(f"the run waited: {why}")


def test_a_call_gets_less_where_only_less_is_left_and_ends_the_run_where_not_even_the_least_is() -> None:
    purse = Purse(0, 0, Source(left=0.3), BOUNDED)
    assert purse.reserve(need(0.1, 0.5), no_pause) == pytest.approx(0.3)
    purse.settle(0.3, 0.25)
    with pytest.raises(LimitsExceeded) as ended:
        purse.reserve(need(0.1, 0.5), no_pause)
    assert ended.value.outcome is not None
    assert (ended.value.outcome.exit_status, ended.value.outcome.reason) == ("cost_limit", "nothing left")


def test_money_for_the_next_call_is_there_before_it() -> None:
    source = Source()
    purse = Purse(0, 0, source, BOUNDED)
    purse.settle(purse.reserve(need(0.1, 0.5), no_pause), 0.2)
    wait_until(lambda: source.granted >= 0.7)
    asked = len(source.requests)
    assert purse.reserve(need(0.1, 0.5), no_pause) == 0.5
    assert all(request.least <= 0.7 for request in source.requests[asked:])


def test_the_cost_limit_counts_what_was_spent_before_and_what_is_in_flight() -> None:
    purse = Purse(1.0, 0.3, None, Money())
    assert purse.reserve(need(0.1, 0.5), no_pause) == 0.5
    # A call is cut to what the limit leaves.
    assert purse.reserve(need(0.1, 0.5), no_pause) == pytest.approx(0.2)
    with pytest.raises(LimitsExceeded) as ended:
        purse.reserve(need(0.2, 0.5), no_pause)
    assert "of 1.00 USD" in str(ended.value.outcome)


def test_a_run_that_waits_keeps_nothing_but_its_calls_in_flight() -> None:
    source = Source(waits=2)
    purse = Purse(0, 0, source, BOUNDED)
    purse.settle(purse.reserve(need(0.1, 0.5), said := Pauses()), 0.5)
    assert said == ["the budget of project web"] * 2
    waiting = [request for request in source.requests if request.keep is not None]
    assert [request.keep for request in waiting] == [0.0, 0.0, 0.0]


def test_without_a_budget_no_call_waits_for_the_control_plane() -> None:
    held = threading.Event()

    class Slow(Source):
        def allow(self, request: AllowanceRequest) -> Allowance:
            assert held.wait(60)
            return super().allow(request)

    purse = Purse(0, 0, Slow(bounded=False), Money(bounded=False))
    for _ in range(3):
        purse.settle(purse.reserve(need(0.1, 0.5), no_pause), 0.4)
    held.set()
    assert purse.spent == pytest.approx(1.2)


def test_a_budget_set_during_the_run_applies_from_the_next_answer_on() -> None:
    source = Source(left=0.3, bounded=True)
    purse = Purse(0, 0, source, Money(bounded=False))
    purse.settle(purse.reserve(need(0.1, 0.2), no_pause), 0.2)
    wait_until(lambda: source.requests != [])
    wait_until(lambda: refused(purse))


def refused(purse: Purse) -> bool:
    try:
        purse.settle(purse.reserve(need(0.2, 0.2), lambda *_: None), 0.2)
    except LimitsExceeded:
        return True
    return False


def test_a_run_waits_for_a_control_plane_that_is_away_and_one_that_was_given_up_until_its_drone_ends_it() -> None:
    away = Source(errors=[Unreachable("away", code="E-NO-SERVER")])
    assert Purse(0, 0, away, BOUNDED).reserve(need(0.1, 0.5), said := Pauses()) == 0.5
    assert ["does not answer" in why for why in said] == [True]
    given_up = Source(errors=[Conflict("over", code="E-RUN-OVER")] * 3)
    with pytest.raises(Preempted):
        Purse(0, 0, given_up, BOUNDED).reserve(need(0.1, 0.5), Pauses())


def test_an_older_control_plane_is_not_asked_again() -> None:
    source = Source(errors=[NotFound("no such route", code="E-HTTP-404")])
    purse = Purse(0, 0, source, BOUNDED)
    for _ in range(3):
        purse.settle(purse.reserve(need(0.1, 0.5), no_pause), 0.5)
    assert len(source.requests) == 1


def test_a_model_without_a_price_is_refused_only_where_a_budget_applies() -> None:
    class Unpriced(Source):
        def allow(self, request: AllowanceRequest) -> Allowance:
            answer = super().allow(request)
            return answer if request.priced else answer.model_copy(update={"refused": "the price is unknown"})

    Purse(0, 0, Unpriced(bounded=False), Money(bounded=False)).check_unpriced("openai/x", no_pause)
    with pytest.raises(LimitsExceeded):
        Purse(0, 0, Unpriced(), BOUNDED).check_unpriced("openai/x", no_pause)


def test_what_a_crashed_run_may_have_spent_includes_its_call_in_flight(tmp_path: Path) -> None:
    purse = Purse(0, 0, Source(), BOUNDED, KeptSpending(tmp_path / "spending"))
    purse.settle(purse.reserve(need(0.1, 0.5), no_pause), 0.2)
    purse.reserve(need(0.1, 0.4), no_pause)
    assert kept_spending(tmp_path / "spending", rebooted=False) == pytest.approx(0.6)
    assert kept_spending(tmp_path / "spending", rebooted=True) >= 1.0
    for content in ("", "0.1", "x y z", "nan\n"):
        (tmp_path / "spending").write_text(content)
        assert kept_spending(tmp_path / "spending", rebooted=False) == 0.0
    assert kept_spending(tmp_path / "other", rebooted=True) == 0.0
