"""Days and months of a budget begin in its own time zone, whatever the clocks there do."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from control_plane.money.spending.ledger import shares
from control_plane.money.spending.periods import end_of, start_of


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_period_begins_and_ends_at_midnight_of_its_zone() -> None:
    cases = [
        ("day", "UTC", "2026-11-25T00:00:00", "2026-11-25T00:00:00", "2026-11-26T00:00:00"),
        ("day", "UTC", "2026-11-25T23:59:59.999999", "2026-11-25T00:00:00", "2026-11-26T00:00:00"),
        ("day", "Europe/Berlin", "2026-11-25T23:30:00", "2026-11-25T23:00:00", "2026-11-26T23:00:00"),
        ("day", "Asia/Kolkata", "2026-11-25T18:29:59", "2026-11-24T18:30:00", "2026-11-25T18:30:00"),
        # The day on which the clocks are set back has 25 hours, and the one on which they are set forward has 23.
        ("day", "Europe/Berlin", "2026-10-25T12:00:00", "2026-10-24T22:00:00", "2026-10-25T23:00:00"),
        ("day", "Europe/Berlin", "2026-03-29T12:00:00", "2026-03-28T23:00:00", "2026-03-29T22:00:00"),
        ("month", "UTC", "2026-12-31T23:59:59", "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
        ("month", "UTC", "2028-02-29T12:00:00", "2028-02-01T00:00:00", "2028-03-01T00:00:00"),
        ("month", "America/New_York", "2026-12-01T04:59:59", "2026-11-01T04:00:00", "2026-12-01T05:00:00"),
    ]
    for per, zone, moment, begins, ends in cases:
        found = start_of(per, zone, utc(moment)), end_of(per, zone, utc(moment))
        assert (zone, moment, *found) == (zone, moment, utc(begins), utc(ends))


def test_a_budget_in_total_has_one_period_that_never_ends() -> None:
    assert start_of("total", "UTC", utc("2026-11-25T12:00:00")) == start_of("total", "UTC", utc("2031-01-01T00:00:00"))
    assert end_of("total", "UTC", utc("2026-11-25T12:00:00")) is None


def test_periods_follow_each_other_without_a_gap() -> None:
    zones = ("UTC", "Pacific/Apia", "America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut")
    for per, zone in product(("day", "month"), zones):
        moment = utc("2011-11-01T00:00:00")
        while moment < utc("2013-02-01T00:00:00"):
            ends = end_of(per, zone, moment)
            assert ends is not None
            assert ends > moment
            assert (per, zone, start_of(per, zone, ends)) == (per, zone, ends)
            moment = ends


# --- what a run has spent is paid from its blocks in their order


def test_the_first_blocks_pay_first_and_the_last_one_pays_what_exceeds_them_all() -> None:
    paid = {0: [0, 0], 4: [4, 0], 10: [10, 0], 13: [10, 3], 25: [10, 15]}
    assert {spent: shares([10, 10], spent) for spent in paid} == paid
    assert (shares([0], 7), shares([], 7)) == ([7], [])


@given(st.lists(st.integers(0, 10**12), min_size=1), st.integers(0, 10**13))
def test_blocks_pay_exactly_what_was_spent(granted: list[int], spent: int) -> None:
    assert sum(shares(granted, spent)) == spent


@given(st.lists(st.integers(0, 100), min_size=1), st.integers(0, 1000), st.integers(0, 1000))
def test_no_block_pays_back_when_more_is_spent(granted: list[int], one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert all(before <= after for before, after in zip(shares(granted, less), shares(granted, more), strict=True))
