"""What an older boot of this drone left behind: processes are ended, unsent events are sent, ended runs reported."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drone.runs.directory import RunDirectory, all_runs
from drone.runs.shutdown import end_process
from drone.sandbox import end_marked
from drone.worker.hand import RunInHand
from shared.clock import Clock

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Leftovers:
    """Runs of older boots that the control plane may not know the end of."""

    runs: tuple[RunInHand, ...]

    @property
    def ended(self) -> list[RunInHand]:
        """They came to their end and wait for the control plane's word that it knows."""
        return [run for run in self.runs if run.end is not None]


def end_leftovers(runs_dir: Path, clock: Clock) -> Leftovers:
    """End all processes of older boots, and return the runs that were not confirmed.

    To be called before the drone says hello: a run in it that did not end is lost from then on, so it must be dead.
    """
    boots: set[str] = set()
    found = []
    for directory in all_runs(runs_dir):
        meta = directory.meta()
        if meta is None or meta.confirmed:
            continue
        boots.add(meta.boot_id)
        if meta.pid is not None and end_process(meta.pid, meta.started_at):
            log.warning("run %s of an older boot was still alive; it was ended", directory.run_id)
        found += list(_known(directory, clock))
    for boot in boots:
        # What outlived both its run and its holder is found by the mark in its environment.
        if survivors := end_marked(boot).found:
            log.warning("%s processes of commands of an older boot were ended", survivors)
    return Leftovers(tuple(found))


def _known(directory: RunDirectory, clock: Clock) -> Iterator[RunInHand]:
    identity = directory.identity()
    if identity is not None:
        yield RunInHand.found(directory, identity, clock)
