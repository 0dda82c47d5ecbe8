"""The money of a run: no call without a reservation, none above the limit, and nothing kept that is not needed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drone.runs.blobs import RunApi
from drone.runs.kept_spending import KeptSpending, kept_spending
from drone.runs.purse import MoneyAwaited, Need, Purse
from shared.amounts import charged, dollars, reserved
from shared.budgets import Allowance, AllowanceRequest, ModelPrice, Money
from shared.errors import Conflict, LimitsExceeded, NotFound, Unreachable
from tests.support import wait_until
from tests.support.clocks import HandClock
from tests.support.control_stand_in import API_TOKEN, BlobServer

BOUNDED = Money(bounded=True)


def need(least: float, wanted: float) -> Need:
    """In USD."""
    return Need("openai/x", reserved(least), reserved(wanted), ModelPrice(model="openai/x"))


def call(purse: Purse, least: float, wanted: float, cost: float) -> float:
    """Make a call that costs so much; what was reserved for it, in USD."""
    amount = purse.reserve(need(least, wanted))
    purse.settle(amount, charged(cost))
    return dollars(amount)


@dataclass
class Source:
    """An account with a fixed sum in USD, which grants what is asked for while it lasts."""

    usd: float = 10.0
    bounded: bool = True
    granted: int = 0
    """Nanodollars."""
    requests: list[AllowanceRequest] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    prices: tuple[ModelPrice, ...] = ()
    waits: int = 0
    waits_for: str = "the budget of project web"

    def __post_init__(self) -> None:
        self.left = charged(self.usd)

    def allow(self, request: AllowanceRequest) -> Allowance:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        least, wanted = reserved(request.least), reserved(request.wanted)
        if request.keep is not None:
            keep = reserved(request.keep)
            self.left, self.granted = self.left + self.granted - keep, keep
        known = Allowance(granted=dollars(self.granted), bounded=True)
        if self.waits and least > self.granted:
            self.waits -= 1
            return known.model_copy(update={"wait_s": 1.0, "waits_for": self.waits_for})
        if least - self.granted > self.left:
            return known.model_copy(update={"refused": "nothing left"})
        more = max(0, min(wanted - self.granted, self.left))
        self.left, self.granted = self.left - more, self.granted + more
        return Allowance(granted=dollars(self.granted), bounded=self.bounded, prices=self.prices)


def test_what_is_granted_for_a_call_is_enough_for_it_to_the_last_nanodollar() -> None:
    """In dollars, 0.051635 - 0.026740000000000003 is less than 0.024895."""
    purse = Purse(0, 0, Source(0.051635), BOUNDED)
    call(purse, 0.01, 0.02674, cost=0.026740000000000003)
    assert call(purse, 0.024895, 1.0, cost=0.0) == 0.024895


def test_a_call_gets_less_where_only_less_is_left_and_ends_the_run_where_not_even_the_least_is() -> None:
    purse = Purse(0, 0, Source(0.3), BOUNDED)
    assert call(purse, 0.1, 0.5, cost=0.25) == 0.3
    with pytest.raises(LimitsExceeded) as ended:
        purse.reserve(need(0.1, 0.5))
    assert ended.value.outcome is not None
    assert (ended.value.outcome.exit_status, ended.value.outcome.reason) == ("cost_limit", "nothing left")


def test_money_for_the_next_call_is_there_before_it() -> None:
    source = Source()
    purse = Purse(0, 0, source, BOUNDED)
    call(purse, 0.1, 0.5, cost=0.2)
    wait_until(lambda: source.granted >= reserved(0.7))
    asked = len(source.requests)
    assert purse.reserve(need(0.1, 0.5)) == reserved(0.5)
    assert all(request.least <= 0.7 for request in source.requests[asked:])


def test_the_cost_limit_counts_what_was_spent_before_and_what_is_in_flight() -> None:
    purse = Purse(1.0, 0.3, None, Money())
    assert purse.reserve(need(0.1, 0.5)) == reserved(0.5)
    # A call is cut to what the limit leaves.
    assert purse.reserve(need(0.1, 0.5)) == reserved(0.2)
    with pytest.raises(LimitsExceeded) as ended:
        purse.reserve(need(0.2, 0.5))
    assert "of 1.00 USD" in str(ended.value.outcome)


def test_a_run_that_waits_keeps_nothing_but_its_calls_in_flight() -> None:
    source = Source(waits=2)
    purse = Purse(0, 0, source, BOUNDED)
    for _ in range(2):
        with pytest.raises(MoneyAwaited) as waits:
            purse.reserve(need(0.1, 0.5))
        assert (waits.value.seconds, waits.value.why) == (1.0, "the budget of project web")
    call(purse, 0.1, 0.5, cost=0.5)
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
        call(purse, 0.1, 0.5, cost=0.4)
    held.set()
    assert purse.spent == pytest.approx(1.2)


def test_a_page_of_a_proxy_does_not_end_the_requests_ahead() -> None:
    with BlobServer() as server:
        server.page = b"<html>Welcome</html>"
        run = RunApi(server.url, API_TOKEN, "run000000000", HandClock(), lambda: 0.0)
        purse = Purse(0, 0, run, Money(bounded=False))
        for number in (1, 2):
            call(purse, 0.1, 0.5, cost=0.4)
            wait_until(lambda number=number: server.seen == number)
        purse.close()


def test_a_budget_set_during_the_run_applies_from_the_next_answer_on() -> None:
    source = Source(0.3)
    purse = Purse(0, 0, source, Money(bounded=False))
    call(purse, 0.1, 0.2, cost=0.2)
    wait_until(lambda: source.requests != [])
    with pytest.raises(LimitsExceeded):
        wait_until(lambda: not call(purse, 0.2, 0.2, cost=0.2))


class Stingy(Source):
    def allow(self, request: AllowanceRequest) -> Allowance:
        return Allowance(granted=0.05, bounded=True)


@pytest.mark.parametrize(
    ("source", "said", "by_others"),
    [
        (Source(errors=[Unreachable("away", code="E-NO-SERVER")]), "does not answer", False),
        (Source(errors=[Conflict("over", code="E-RUN-OVER")]), "the fleet has given up this run", False),
        (Source(errors=[NotFound("unknown", code="E-RUN-404")]), "the fleet has given up this run", False),
        (Stingy(), "0.050000000 USD", False),
        (Source(waits=1, waits_for=""), "other orders", True),
    ],
)
def test_what_a_call_waits_for_has_a_reason_whatever_the_control_plane_answers(
    source: Source, said: str, by_others: bool
) -> None:
    with pytest.raises(MoneyAwaited) as waits:
        Purse(0, 0, source, BOUNDED).reserve(need(0.1, 0.5))
    assert (said in waits.value.why, waits.value.by_others) == (True, by_others)


def test_what_is_granted_to_a_call_that_waited_is_that_call_s() -> None:
    """Another thread that needs money at the same moment does not take it."""
    purse, found = Purse(0, 0, Source(0.5), BOUNDED), list[str]()

    def take() -> None:
        try:
            purse.reserve(need(0.3, 0.3))
            found.append("taken")
        except LimitsExceeded:
            found.append("refused")

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [*["refused"] * 7, "taken"]


def test_an_idle_run_gives_back_what_it_holds_also_after_an_ample_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drone.runs.purse.IDLE_SECONDS", 0.01)
    source = Source()
    # The first answer grants more than the next call needs.
    purse = Purse(0, 0, source, BOUNDED)
    call(purse, 0.1, 0.1, cost=0.01)
    wait_until(lambda: source.granted == reserved(0.01))


@dataclass
class Deaf(Source):
    """Its first answers are lost."""

    deaf: int = 0

    def allow(self, request: AllowanceRequest) -> Allowance:
        answer = super().allow(request)
        if self.deaf:
            self.deaf -= 1
            raise Unreachable("lost", code="E-NO-SERVER")
        return answer


def test_an_idle_run_repeats_its_return_until_the_control_plane_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a grant whose answer was lost, and that no call used."""
    monkeypatch.setattr("drone.runs.purse.IDLE_SECONDS", 0.01)
    away = Unreachable("away", code="E-NO-SERVER")
    source = Source()
    purse = Purse(0, 0, source, BOUNDED)
    amount = purse.reserve(need(0.1, 0.5))
    wait_until(lambda: source.granted >= reserved(1.0))
    source.errors += [away, away]
    purse.settle(amount, charged(0.01))
    wait_until(lambda: source.granted == reserved(0.01))
    assert source.errors == []
    source = Deaf(deaf=2)
    with pytest.raises(MoneyAwaited):
        Purse(0, 0, source, BOUNDED).reserve(need(0.1, 0.5))
    wait_until(lambda: (source.deaf, source.granted) == (0, 0))


class Unpriced(Source):
    def allow(self, request: AllowanceRequest) -> Allowance:
        answer = super().allow(request)
        return answer if request.priced else answer.model_copy(update={"refused": "the price is unknown"})


def test_a_model_without_a_price_is_refused_only_where_a_budget_applies() -> None:
    Purse(0, 0, Unpriced(bounded=False), Money(bounded=False)).check_unpriced("openai/x")
    with pytest.raises(LimitsExceeded):
        Purse(0, 0, Unpriced(), BOUNDED).check_unpriced("openai/x")


def test_a_budget_or_a_price_set_during_the_run_reaches_it_also_if_its_model_has_no_price_or_costs_nothing() -> None:
    purse = Purse(0, 0, Unpriced(), Money(bounded=False))
    with pytest.raises(LimitsExceeded):
        wait_until(lambda: purse.check_unpriced("openai/x"))
    price = ModelPrice(model="openai/x", input=1, output=1)
    purse = Purse(0, 0, Source(prices=(price,)), Money(bounded=True, prices=(ModelPrice(model="openai/x", input=0),)))
    assert call(purse, 0, 0, cost=0) == 0
    wait_until(lambda: purse.prices == (price,))
    # Not at each call: each request is a write to the control plane's database.
    for _ in range(3):
        call(purse, 0, 0, cost=0)
        wait_until(lambda: purse._coming is None)
    purse.close()
    assert purse._requested == 1


def test_what_a_run_has_returned_does_not_count_after_a_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drone.runs.purse.IDLE_SECONDS", 0.01)
    purse = Purse(0, 0, Source(), BOUNDED, KeptSpending(tmp_path / "spending"))
    amount = purse.reserve(need(0.1, 0.5))
    assert kept_spending(tmp_path / "spending", rebooted=True) >= 0.5
    purse.settle(amount, charged(0.01))
    wait_until(lambda: kept_spending(tmp_path / "spending", rebooted=True) == 0.01)
    call(purse, 0.1, 0.5, cost=0.2)
    assert kept_spending(tmp_path / "spending", rebooted=True) >= 0.51


def test_what_a_crashed_run_may_have_spent_includes_its_call_in_flight(tmp_path: Path) -> None:
    purse = Purse(0, 0, Source(), BOUNDED, KeptSpending(tmp_path / "spending"))
    call(purse, 0.1, 0.5, cost=0.2)
    purse.reserve(need(0.1, 0.4))
    assert kept_spending(tmp_path / "spending", rebooted=False) == pytest.approx(0.6)
    assert kept_spending(tmp_path / "spending", rebooted=True) >= 1.0
    for content in ("", "0.1", "x y z", "nan\n"):
        (tmp_path / "spending").write_text(content)
        assert kept_spending(tmp_path / "spending", rebooted=False) == 0.0
    assert kept_spending(tmp_path / "other", rebooted=True) == 0.0
