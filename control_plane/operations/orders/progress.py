"""The current activity of a run as text: what it does, for how long, and whether it still makes progress."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from control_plane.db.runs import Run
from shared.durations import roughly

QUIET_SHOWN_SECONDS = 120.0
"""Time without progress after which the text reports that instead of the activity."""
_SHORT_SECONDS = 10


def of_run(run: Run, now: datetime) -> str:
    """`shell: npm test, for 3 min`; `no progress for 4 min: shell: npm test`; '' for an idle run."""
    return in_words(run.doing, _since(run.doing_since, now), _since(run.progress_at, now), run.waits_for)


def is_stalled(run: Run, now: datetime) -> bool:
    """Whether the run has made no progress for `QUIET_SHOWN_SECONDS`, although it waits for nothing."""
    return _is_stalled(_since(run.progress_at, now), run.waits_for)


def _is_stalled(quiet_seconds: float, waits_for: str) -> bool:
    return quiet_seconds >= QUIET_SHOWN_SECONDS and not waits_for


def so_far(run: Run, waited: timedelta, now: datetime) -> int:
    """Milliseconds that an active run has worked, without the time that it `waited` for users.

    0 for one that has ended, since its own duration is stored.
    """
    return 0 if run.ended_at else max(0, round((now - run.started_at - waited).total_seconds() * 1000))


def of_beat(said: Mapping[str, Any], age: timedelta) -> str:
    """The same text from a heartbeat's report on the run, received `age` ago."""
    older = max(0.0, age.total_seconds())
    doing, quiet = said.get("doing_seconds", 0.0) + older, said.get("quiet_seconds", 0.0) + older
    return in_words(said.get("doing", ""), doing, quiet, said.get("waits_for", ""))


def in_words(doing: str, doing_seconds: float, quiet_seconds: float, waits_for: str) -> str:
    """The activity and its duration, or the lack of progress if the run is stalled."""
    if _is_stalled(quiet_seconds, waits_for):
        return f"no progress for {roughly(quiet_seconds)}: {doing or 'working'}"
    if not doing or doing_seconds < _SHORT_SECONDS:
        return doing
    # In steps, so that a follower does not receive an update every second.
    shown = doing_seconds if doing_seconds >= 60 else doing_seconds // _SHORT_SECONDS * _SHORT_SECONDS
    return f"{doing}, for {roughly(shown)}"


def _since(moment: datetime | None, now: datetime) -> float:
    return (now - moment).total_seconds() if moment is not None else 0.0
