"""How this drone acts on each control message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drone.reporting.reporter import Reporter
from drone.worker.tracked_runs import TrackedRuns
from shared.control import (
    Cancel,
    Compact,
    Confirm,
    ControlMessage,
    Decide,
    Drain,
    Rename,
    Resend,
    RotateKeys,
    Say,
    Suspend,
    TakeBack,
)


@dataclass(frozen=True)
class ControlActions:
    """Acts on control messages. A message about a run that is not tracked has no effect, except a cancel."""

    runs: TrackedRuns
    reporter: Reporter
    drain: Callable[[bool], None]
    rotate_keys: Callable[[], None]
    rename: Callable[[str], None]

    def act(self, message: ControlMessage) -> None:
        match message.body:
            case Cancel() as cancel:
                self.runs.cancel(cancel.run_id, cancel.generation, cancel.reason)
            case Confirm() as confirm:
                self._confirm(confirm)
            case Resend() as resend:
                self.reporter.resend(resend.run_id, resend.from_seq)
            case Say() | TakeBack() | Decide() | Suspend() | Compact() as word:
                # To the run's process; queued until there is one.
                if run := self.runs.get(word.run_id):
                    run.send(word)
            case Drain() | RotateKeys() | Rename() as change:
                self._change_drone(change)

    def _change_drone(self, change: Drain | RotateKeys | Rename) -> None:
        match change:
            case Drain():
                self.drain(change.on)
            case RotateKeys():
                self.rotate_keys()
            case Rename():
                self.rename(change.name)

    def settle(self) -> None:
        """Stop tracking runs that have ended and are confirmed."""
        for run in self.runs.settle():
            self.reporter.drop(run.run_id)

    def _confirm(self, confirm: Confirm) -> None:
        run = self.runs.get(confirm.run_id)
        if run is not None:
            run.confirm(confirm.last_seq)
            self.settle()
