"""What a run does, in words: since when, and whether anything still comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from control_plane.db.runs import Run
from shared.durations import roughly

QUIET_SHOWN_SECONDS = 120.0
"""Of silence, from which on it is what people are told."""
_SHORT_SECONDS = 10


def of_run(run: Run, now: datetime) -> str:
    """`shell: npm test, for 3 min`; `no progress for 4 min: shell: npm test`; '' for a run that does nothing."""
    return in_words(run.doing, _since(run.doing_since, now), _since(run.progress_at, now), run.waits_for)


def is_stalled(run: Run, now: datetime) -> bool:
    """Whether nothing has come of the run for long, although it waits for nothing."""
    return _is_stalled(_since(run.progress_at, now), run.waits_for)


def _is_stalled(quiet_seconds: float, waits_for: str) -> bool:
    return quiet_seconds >= QUIET_SHOWN_SECONDS and not waits_for


def of_beat(said: Mapping[str, Any], age: timedelta) -> str:
    """The same from what a heartbeat said of the run, `age` ago."""
    older = max(0.0, age.total_seconds())
    doing, quiet = said.get("doing_seconds", 0.0) + older, said.get("quiet_seconds", 0.0) + older
    return in_words(said.get("doing", ""), doing, quiet, said.get("waits_for", ""))


def in_words(doing: str, doing_seconds: float, quiet_seconds: float, waits_for: str) -> str:
    """What is done, and for how long; where nothing came of it for long, and not for a reason, that."""
    if _is_stalled(quiet_seconds, waits_for):
        return f"no progress for {roughly(quiet_seconds)}: {doing or 'working'}"
    if not doing or doing_seconds < _SHORT_SECONDS:
        return doing
    # In steps: whoever follows is not told every second that another one has passed.
    shown = doing_seconds if doing_seconds >= 60 else doing_seconds // _SHORT_SECONDS * _SHORT_SECONDS
    return f"{doing}, for {roughly(shown)}"


def _since(moment: datetime | None, now: datetime) -> float:
    return (now - moment).total_seconds() if moment is not None else 0.0
