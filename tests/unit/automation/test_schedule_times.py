"""When cron lines come: the fields, the zones, and what happens where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane.automation.cron_times import read_times
from control_plane.automation.schedules import filled
from control_plane.contract.declarations.task_documents import TaskRequest
from shared.errors import Invalid

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def local(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next times as the zone's clocks show them, each with its offset; `after` is a time of the zone."""
    start = datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone))
    times = read_times(cron, zone, NOW).upcoming(start, count)
    return [f"{each.astimezone(ZoneInfo(zone)):%m-%d %H:%M %z}" for each in times]


def test_what_is_due_in_an_hour_that_is_left_out_or_comes_twice_comes_once() -> None:
    cases = [
        (BERLIN, "30 2 * * *", "2026-03-28T12:00", ["03-29 03:00 +0200", "03-30 02:30 +0200"]),
        (NEW_YORK, "15 2 * * *", "2026-03-07T12:00", ["03-08 03:00 -0400", "03-09 02:15 -0400"]),
        (LORD_HOWE, "15 2 * * *", "2026-10-03T12:00", ["10-04 02:30 +1100", "10-05 02:15 +1100"]),
        (BERLIN, "0,20,40 2 * * *", "2026-03-28T12:00", ["03-29 03:00 +0200", "03-30 02:00 +0200"]),
        (BERLIN, "30 2,3 * * *", "2026-03-28T12:00", ["03-29 03:00 +0200", "03-29 03:30 +0200"]),
        (BERLIN, "0 2,3 * * *", "2026-03-28T12:00", ["03-29 03:00 +0200", "03-30 02:00 +0200"]),
        (BERLIN, "30 2 * * *", "2026-10-24T12:00", ["10-25 02:30 +0200", "10-26 02:30 +0100"]),
        (NEW_YORK, "30 1 * * *", "2026-10-31T12:00", ["11-01 01:30 -0400", "11-02 01:30 -0500"]),
        (LORD_HOWE, "45 1 * * *", "2026-04-04T12:00", ["04-05 01:45 +1100", "04-06 01:45 +1030"]),
        (LORD_HOWE, "* 5 * * *", "2026-10-04T00:30", ["10-04 05:00 +1100", "10-04 05:01 +1100"]),
    ]
    assert [local(cron, zone, after, 2) for zone, cron, after, _ in cases] == [times for *_, times in cases]
    # A line that was written in the second of two equal hours does not come in the past.
    second = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=ZoneInfo(BERLIN))
    assert read_times("30 2 * * *", BERLIN, second).after(second) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_a_line_with_a_star_comes_by_the_time_that_really_passes() -> None:
    changes = ((BERLIN, 3, 29), (BERLIN, 10, 25), (NEW_YORK, 11, 1), (LORD_HOWE, 4, 5), (LORD_HOWE, 10, 4))
    for zone, month, day in changes:
        start = datetime(2026, month, day, tzinfo=ZoneInfo(zone)).astimezone(UTC)
        times = read_times("*/10 * * * *", zone, NOW).upcoming(start, 36)
        assert {later - earlier for earlier, later in pairwise(times)} == {timedelta(minutes=10)}


def test_a_line_comes_when_crons_rules_say() -> None:
    firsts = {
        "0 6 * * 1-5": "2026-11-23T06:00",
        "*/20 * * * *": "2026-11-21T12:20",
        "0 0 1,15 * *": "2026-12-01T00:00",
        "0 0 13 * FRI": "2026-11-27T00:00",
        "0 0 */2 * FRI": "2026-11-27T00:00",
        "0 12 L * *": "2026-11-30T12:00",
        "0 0 29 2 *": "2028-02-29T00:00",
        "0 0 29 2 */7": "2032-02-29T00:00",
        "0 9 * jan mon#1": "2027-01-04T09:00",
    }
    found = {cron: f"{read_times(cron, 'UTC', NOW).after(NOW):%Y-%m-%dT%H:%M}" for cron in firsts}
    assert found == firsts
    asked = TaskRequest(title="Tidy {{date}}", description="{{ date }} at {{time}}, {{other}}")
    told = filled(asked, datetime(2026, 11, 21, 23, 30, tzinfo=UTC), BERLIN)
    assert (told.title, told.description) == ("Tidy 2026-11-22", "2026-11-22 at 00:30, {{other}}")


def test_a_line_that_is_malformed_or_never_comes_is_refused_and_cut_short() -> None:
    lines = [
        *("", "x", "* * * *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "61 * * * *", "0 24 * * *", "*/0 * * * *"),
        *("5-1 * * * *", "@daily", "0 0 * 2 MON#6", "0 0 , * *", "0 0 LW-3 * *", "5#2/2 * * * *", "* * * * 5L/2"),
        *("0 0 0 30 2 *", "* * * * * *", "0 " * 1000, f"{'0,' * 200}0 * * * *"),
    ]
    for cron in lines:
        with pytest.raises(Invalid) as refusal:
            read_times(cron, "UTC", NOW)
        assert (cron, refusal.value.code) == (cron, "E-SCHEDULE-CRON")
        assert len(refusal.value.what) < 150


def test_a_zone_that_does_not_exist_or_is_a_path_is_refused_with_one_that_is_near() -> None:
    near = {"Europe/Brlin": BERLIN, "europe/berlin": BERLIN, "New_York": NEW_YORK}
    paths = ("", "../../etc/passwd", "/etc/localtime", "x" * 10_000, "a\0b", "posixrules")
    for zone in (*near, *paths):
        with pytest.raises(Invalid) as refusal:
            read_times("0 0 * * *", zone, NOW)
        assert (zone, refusal.value.code) == (zone, "E-SCHEDULE-ZONE")
        assert near.get(zone, "") in refusal.value.next


MINUTES = st.sampled_from(["0", "*", "*/7", "3,30", "59"])
HOURS = st.sampled_from(["*", "2", "1-3", "*/5", "0,23"])
DAYS = st.sampled_from(["* * *", "1 * *", "* * SUN", "13,14 * 5", "* 3,4,10,11 *"])


@settings(deadline=None, max_examples=30)
@given(MINUTES, HOURS, DAYS, st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, "UTC"]), st.integers(0, 500_000))
def test_times_only_go_forward_and_asking_at_one_of_them_gives_the_next(
    minute: str, hour: str, days: str, zone: str, offset: int
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=offset)
    times = read_times(f"{minute} {hour} {days}", zone, NOW)
    found = times.upcoming(start, 4)
    assert found == sorted(set(found))
    assert found[0] > start
    assert [times.after(each) for each in found[:-1]] == found[1:]
