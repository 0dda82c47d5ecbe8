"""The rules: how long each kind of data is kept, as the settings say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from control_plane.core.settings import FleetSettings
from shared.durations import kept_for

Kind: TypeAlias = Literal["readings", "services", "steps", "logs", "work", "raw events"]
MAY_RUN_AGAIN = timedelta(days=7)
"""For so long, an order that failed or was canceled can be resumed where it ended: nothing of its session goes."""


@dataclass(frozen=True)
class RetentionRule:
    """How long one kind is kept."""

    kind: Kind
    setting: str
    days: int | None
    """None: without limit."""

    def before(self, now: datetime) -> datetime | None:
        """What ended before this time has been kept long enough; None: nothing has."""
        return None if self.days is None else now - kept_for(self.days)


def rules_of(settings: FleetSettings) -> tuple[RetentionRule, ...]:
    """The rule of each kind, in the order in which they are applied."""
    return (
        RetentionRule("readings", "FLEET_KEEP_READINGS_DAYS", settings.keep_readings_days),
        RetentionRule("services", "FLEET_KEEP_SERVICES_DAYS", settings.keep_services_days),
        RetentionRule("steps", "FLEET_KEEP_STEPS_DAYS", settings.keep_steps_days),
        RetentionRule("logs", "FLEET_KEEP_LOGS_DAYS", settings.keep_logs_days),
        RetentionRule("work", "FLEET_KEEP_WORK_DAYS", settings.keep_work_days),
        RetentionRule("raw events", "FLEET_KEEP_RAW_EVENTS_DAYS", settings.keep_raw_events_days),
    )
