"""Days and months of a budget begin in its own time zone, whatever the clocks there do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from control_plane.spending.periods import begin_of, end_of


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("per", "zone", "moment", "begins", "ends"),
    [
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
    ],
)
def test_a_period_begins_and_ends_at_midnight_of_its_zone(
    per: str, zone: str, moment: str, begins: str, ends: str
) -> None:
    assert begin_of(per, zone, utc(moment)) == utc(begins)
    assert end_of(per, zone, utc(moment)) == utc(ends)


def test_a_budget_in_total_has_one_period_that_never_ends() -> None:
    assert begin_of("total", "UTC", utc("2026-11-25T12:00:00")) == begin_of("total", "UTC", utc("2031-01-01T00:00:00"))
    assert end_of("total", "UTC", utc("2026-11-25T12:00:00")) is None


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut"])
@pytest.mark.parametrize("per", ["day", "month"])
def test_periods_follow_each_other_without_a_gap(per: str, zone: str) -> None:
    moment = utc("2011-11-01T00:00:00")
    while moment < utc("2013-02-01T00:00:00"):
        ends = end_of(per, zone, moment)
        assert ends is not None
        assert ends > moment
        assert begin_of(per, zone, ends) == ends
        moment = ends
