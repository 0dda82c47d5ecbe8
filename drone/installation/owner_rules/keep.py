"""How long the drone keeps what it can fetch or make again: the table `[keep]`."""

from __future__ import annotations

from dataclasses import dataclass

RUN_DAYS = 7
"""A directory of a run is kept for at least so long: it prevents the run from starting twice."""


@dataclass(frozen=True)
class KeepRules:
    """Days without use, and bytes; None: no limit."""

    run_days: int | None = RUN_DAYS
    workspace_days: int | None = 30
    mirror_days: int | None = 30
    workspace_space: int | None = None
    mirror_space: int | None = None
