"""The times of a cron line in a time zone, with the rules of Debian's cron for clock changes.

A line with fixed minute and hour runs once at a clock change: right after a skipped hour, and in the first of two
repeated hours. A line with `*` in minute or hour runs by elapsed time. cronsim parses the fields; the iteration over
days is our own, as cronsim's is wrong for clock changes of half an hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from control_plane.contract.validation.checks import shown
from control_plane.contract.validation.time_zones import check_zone
from shared.errors import Invalid

MAX_CRON = 255
FIELDS = 5
_HORIZON = timedelta(days=50 * 366)
"""A line without a time by then never has one: 29 February on a given weekday recurs within 40 years."""
_MINUTE = timedelta(minutes=1)
_FARTHEST = timedelta(hours=4)


@dataclass(frozen=True)
class Times:
    """A cron line in a time zone."""

    cron: str
    zone: ZoneInfo
    fields: CronSim
    fixed: bool
    """Neither minute nor hour begins with `*`."""

    def after(self, at: datetime) -> datetime | None:
        """The first time after `at`, in UTC; None if there is none within fifty years."""
        return next(self._walk(at), None)

    def upcoming(self, at: datetime, count: int = 5) -> list[datetime]:
        """The next few times after `at`, in UTC."""
        return list(islice(self._walk(at), count))

    def _walk(self, at: datetime) -> Iterator[datetime]:
        last = at.astimezone(UTC)
        # Start a day earlier: times that a clock change skipped then run today.
        day = at.astimezone(self.zone).date() - timedelta(days=1)
        end = day + _HORIZON
        while day < end:
            if day.month not in self.fields.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
                continue
            if self.fields.match_day(day):
                for moment in self._on(day, last):
                    yield moment
                    last = moment
            day += timedelta(days=1)

    def _on(self, day: date, after: datetime) -> list[datetime]:
        """The line's times on one calendar day of the zone that are after `after`, without duplicates."""
        named = (
            datetime.combine(day, time(hour, minute)) for hour in self.fields.hours for minute in self.fields.minutes
        )
        # Checking each time is expensive; no zone's clocks change by this much.
        begin = after.astimezone(self.zone).replace(tzinfo=None) - _FARTHEST
        moments = {moment for each in named if each >= begin for moment in self._moments(each)}
        return sorted(moment for moment in moments if moment > after)

    def _moments(self, named: datetime) -> Iterator[datetime]:
        """The moments, in UTC, at which the zone's clocks show `named`, or the one that replaces it."""
        first, second = (named.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if first.astimezone(self.zone).replace(tzinfo=None, fold=0) == named:
            yield first
            if not self.fixed and second != first:
                yield second
        elif self.fixed:
            yield self._after_gap(named)

    def _after_gap(self, named: datetime) -> datetime:
        """The moment at which the clocks skip `named`."""
        while True:
            named += _MINUTE
            moment = named.replace(tzinfo=self.zone, fold=0).astimezone(UTC)
            if moment.astimezone(self.zone).replace(tzinfo=None, fold=0) == named:
                return moment


def read_times(cron: str, timezone: str, now: datetime) -> Times:
    """The times of a user-supplied line and zone. Raises Invalid if there are none."""
    check_zone(timezone, code="E-SCHEDULE-ZONE")
    line = " ".join(cron.split())
    if len(cron) > MAX_CRON:
        raise _invalid(cron, f"it has {len(cron):,} characters; {MAX_CRON} are allowed")
    count = len(line.split())
    if count != FIELDS:
        raise _invalid(cron, f"it has {count} fields; five are required: minute, hour, day, month and weekday")
    try:
        times = times_of(line, timezone)
    # Besides its own error, cronsim raises AssertionError, and ValueError from int().
    except (CronSimError, AssertionError, ValueError) as error:
        raise _invalid(cron, f"{str(error)[:80]}: malformed, or it never matches a date") from None
    if times.after(now) is None:
        raise _invalid(cron, "it never matches: none of its months has such a day")
    return times


def times_of(line: str, timezone: str) -> Times:
    """The times of a line that `read_times` accepted."""
    minute, hour = line.split()[:2]
    fields = CronSim(line, datetime(2000, 1, 1, tzinfo=UTC))
    return Times(line, ZoneInfo(timezone), fields, fixed=not minute.startswith("*") and not hour.startswith("*"))


def _invalid(cron: str, why: str) -> Invalid:
    return Invalid(
        f"invalid cron expression {shown(cron)}",
        code="E-SCHEDULE-CRON",
        why=why,
        next="five fields, for example '0 6 * * 1-5': at 6:00 from Monday to Friday",
    )
