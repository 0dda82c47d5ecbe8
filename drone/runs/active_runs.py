"""The active runs of a drone, as found in its run directories."""

from __future__ import annotations

from dataclasses import dataclass

from drone.installation.home import DroneHome
from drone.runs.directory import RunDirectory, all_runs


@dataclass(frozen=True)
class ActiveRun:
    """An active run of this drone."""

    run: str
    order: str
    since: str
    """ISO 8601, the drone's clock."""


def runs_in_hand(home: DroneHome) -> list[ActiveRun]:
    """The runs of the drone's current boot that have not ended; only meaningful while the drone runs."""
    boot = home.boot_file.read_text().strip() if home.boot_file.exists() else None
    return [found for run in all_runs(home.runs_dir) if (found := _in_hand(run, boot))]


def _in_hand(run: RunDirectory, boot: str | None) -> ActiveRun | None:
    meta = run.meta()
    if meta is None or meta.confirmed or meta.boot_id != boot or run.end() is not None:
        return None
    return ActiveRun(run.run_id, meta.order_id, meta.claimed_at)
