"""Weekly hours in local time, as the owner writes them: `Mon-Fri 20:00-07:00`, `Sat,Sun`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_RULE = re.compile(r"(?i)(?P<days>[a-z,\s-]*)(?:(\d\d?):(\d\d)\s*-\s*(\d\d?):(\d\d)\s*)?")
_DAY = 24 * 60
_WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Hours:
    """Minutes of the day on some days; hours that end before they begin end on the next day."""

    days: frozenset[int]
    begin: int = 0
    end: int = _DAY

    def contain(self, moment: datetime) -> bool:
        """Whether a local time is in them."""
        minute, today = moment.hour * 60 + moment.minute, moment.weekday()
        if self.begin < self.end:
            return today in self.days and self.begin <= minute < self.end
        yesterday = (today - 1) % 7
        return (today in self.days and minute >= self.begin) or (yesterday in self.days and minute < self.end)

    def end_after(self, moment: datetime) -> datetime:
        """When the hours that contain this local time end."""
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        until_tomorrow = self.begin >= self.end and moment.hour * 60 + moment.minute >= self.begin
        return midnight + timedelta(days=until_tomorrow, minutes=self.end)


def time_left(rules: tuple[Hours, ...], moment: datetime) -> timedelta:
    """How long one of the rules after the other contains the time from this moment on: at most about a week."""
    until = moment
    while until - moment < _WEEK and (now := [rule for rule in rules if rule.contain(until)]):
        until = max(rule.end_after(until) for rule in now)
    return until - moment


def read_hours(text: str) -> Hours:
    """The hours that a text describes. Raises ValueError if it describes none."""
    found = _RULE.fullmatch(text)
    if found is None or not text.strip():
        raise ValueError(text)
    days = _days(found["days"]) if found["days"].strip() else frozenset(range(7))
    if found[2] is None:
        return Hours(days)
    begin, end = _minute(found[2], found[3]), _minute(found[4], found[5])
    if begin in {end, _DAY}:
        raise ValueError(text)
    return Hours(days, begin, end)


def _minute(hour: str, minute: str) -> int:
    value = int(hour) * 60 + int(minute)
    if int(minute) > 59 or value > _DAY:
        raise ValueError(f"{hour}:{minute}")
    return value


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = (name.strip() for name in part.partition("-"))
        begin = DAYS.index(first)
        end = DAYS.index(last) if last else begin
        found |= {day % 7 for day in range(begin, end + 1 + (7 if end < begin else 0))}
    return frozenset(found)
