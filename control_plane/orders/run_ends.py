"""The end of a run, as its drone reported it or on its behalf."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Dispatch
from control_plane.db.runs import Run
from control_plane.money.spending.settlement import run_lost, run_reported
from control_plane.orders.status_changes import move_run
from control_plane.orders.waits import close_all, suspend_all
from shared.states import RunStatus


@dataclass(frozen=True)
class RunEnding:
    """How a run ended. `reason` is one sentence for people."""

    to: RunStatus
    exit_status: str
    reason: str
    suspended: bool = False
    """Its waits stay open, and its order gets the answer when it continues."""


def close_run(db: Session, core: Core, dispatch: Dispatch, ending: RunEnding) -> None:
    """Close the dispatch and all waits of its run, and end the run if it is still running."""
    now = core.clock.now()
    dispatch.closed_at = dispatch.closed_at or now
    if ending.suspended:
        suspend_all(db, core, dispatch.id)
    else:
        close_all(db, core, dispatch.id)
    run = db.get(Run, dispatch.id)
    if run is not None and run.status == RunStatus.RUNNING:
        move_run(db, run, ending.to, exit_status=str(ending.exit_status), reason=ending.reason, ended_at=now)
    if ending.to is RunStatus.LOST or run is None:
        run_lost(db, core, dispatch)
    else:
        run_reported(db, core, dispatch, run)
