"""Cleans up after an older boot of this drone: processes are ended, unsent events are sent, ended runs reported."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from drone.processes.ending import end_marked, end_process
from drone.processes.receipt import Ended
from drone.runs.directory import Meta, RunDirectory, all_runs
from drone.runs.end_on_behalf import end_on_behalf
from drone.worker.tracked_runs import TrackedRun
from shared.clock import Clock
from shared.events import Receipt, RunEnded, RunStarted
from shared.outcome import ExitStatus

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class UnconfirmedRuns:
    """Runs of older boots whose end the control plane may not know."""

    runs: tuple[TrackedRun, ...]

    @property
    def ended(self) -> list[TrackedRun]:
        """The runs that have ended and wait for the control plane's confirmation."""
        return [run for run in self.runs if run.end is not None]


def end_previous_boots(runs_dir: Path, sandbox: str, clock: Clock) -> UnconfirmedRuns:
    """End all processes of older boots, and return the runs that were not confirmed, each with its last event.

    A run that did not end gets a last event on its behalf, with the receipt of its remaining processes: its order may
    be canceled by now and wait for that receipt. If the event cannot be written (a full disk), the hello lists the run
    as not ended, and so it is still lost. Call this before the hello: the runs that it lists must be dead.
    """
    boots: set[str] = set()
    found = []
    for directory in all_runs(runs_dir):
        meta = directory.meta()
        if meta is None or meta.confirmed:
            continue
        boots.add(meta.boot_id)
        receipt = _end(directory, meta, clock)
        for run in _known(directory, clock):
            if run.end is None:
                _write_end(run, meta, sandbox, receipt, clock)
            found.append(run)
    for boot in boots:
        # Processes that outlived both their run and their holder are found by the mark in their environment.
        if survivors := end_marked(boot).found:
            log.warning("stopped %s command processes of an earlier boot", survivors)
    return UnconfirmedRuns(tuple(found))


def _end(directory: RunDirectory, meta: Meta, clock: Clock) -> Receipt:
    """End what is left of the run; the receipt includes what the run ended itself when its worker was gone."""
    # The commands first: their holders are below the run, and would be counted as if they were commands.
    now = end_marked(f"{meta.boot_id}.{directory.run_id}")
    if meta.pid is not None:
        now += end_process(meta.pid, meta.started_at, meta.machine_boot)
    if now.found:
        log.warning("run %s of an earlier boot: stopped %s of %s processes", directory.run_id, now.ended, now.found)
    return _ended_by_itself(directory).then(now).receipt(clock.now())


def _ended_by_itself(directory: RunDirectory) -> Ended:
    """The processes that the run ended itself when its worker was gone, if that happened."""
    with contextlib.suppress(OSError, ValidationError):
        told = Receipt.model_validate_json(directory.orphaned.read_text())
        return Ended(told.found, told.ended, told.survivors)
    return Ended()


def _known(directory: RunDirectory, clock: Clock) -> Iterator[TrackedRun]:
    identity = directory.identity()
    if identity is not None:
        yield TrackedRun.found(directory, identity, clock)


def _write_end(run: TrackedRun, meta: Meta, sandbox: str, receipt: Receipt, clock: Clock) -> None:
    end = RunEnded(
        status="failed",
        exit_status=ExitStatus.LOST,
        reason="the run was lost when the drone restarted",
        receipt=receipt,
        order_at_fault=False,
    )
    started = RunStarted(boot_id=meta.boot_id, sandbox=sandbox)
    try:
        for event in end_on_behalf(run.directory, run.identity, clock, started, [end]):
            run.note_event(event)
    except OSError as error:
        log.error("the end of run %s cannot be written; reporting the run as lost: %s", run.run_id, error)
