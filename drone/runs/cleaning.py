"""Cleans up a drone's disk: directories of confirmed runs, workspaces and mirrors that were not used for long."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from drone.installation.home import DroneConfig
from drone.installation.owner_rules import KeepRules
from drone.runs.directory import RunDirectory, all_runs, not_needed_since
from drone.workspace.cleaning import Cleaning, Stored, size_of
from shared.clock import Clock
from shared.durations import kept_for


@dataclass(frozen=True)
class CleanedKind:
    """What was, or would be, removed of one kind."""

    kind: str
    """runs, workspaces or mirrors."""
    held: int
    """How many there were."""
    removed: int
    removed_bytes: int


def clean(
    runs: Path, config: DroneConfig, rules: KeepRules, clock: Clock, *, dry_run: bool = False
) -> list[CleanedKind]:
    """Remove what the rules say of the drone's runs and workspace, and return the figures; a dry run only counts.

    Never removed: a run of this drone that is not confirmed, and the workspace of its order; what is locked; a mirror
    from which a workspace borrows.
    """
    before = None if rules.run_days is None else clock.now() - kept_for(rules.run_days)
    found = list(all_runs(runs))
    old = [] if before is None else list(not_needed_since(runs, config.drone_id, before))
    of_runs = CleanedKind("runs", len(found), len(old), sum(size_of(run.path) for run in old))
    needed = _unconfirmed_orders(found, config.drone_id)
    if not dry_run:
        for run in old:
            shutil.rmtree(run.path)
    cleaning = Cleaning(Path(config.workspace), rules, clock.now(), needed)
    held = len(cleaning.workspaces), len(cleaning.mirrors)
    gone = (cleaning.old_workspaces, cleaning.old_mirrors) if dry_run else cleaning.remove()
    return [of_runs, _figures("workspaces", held[0], gone[0]), _figures("mirrors", held[1], gone[1])]


def _unconfirmed_orders(runs: Sequence[RunDirectory], drone_id: str) -> set[str]:
    """The orders of runs of which the control plane does not have every event."""
    return {meta.order_id for run in runs if (meta := run.meta()) is not None and meta.unconfirmed_of(drone_id)}


def _figures(kind: str, held: int, gone: Sequence[Stored]) -> CleanedKind:
    return CleanedKind(kind, held, len(gone), sum(each.bytes for each in gone))
