"""What each control message means for this drone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drone.reporting.reporter import Reporter
from drone.worker.active_runs import Hand
from shared.control import Cancel, Compact, Confirm, ControlMessage, Decide, Drain, Resend, Say

CANCEL_SECONDS = 60.0
"""For a run to end its processes and store its work, once it was canceled; then it is killed."""


@dataclass(frozen=True)
class Letters:
    """Acts on control messages. A message about a run that is not in hand has nothing left to do."""

    hand: Hand
    reporter: Reporter
    drain: Callable[[bool], None]

    def act(self, message: ControlMessage) -> None:
        match message.body:
            case Cancel() as cancel:
                self._cancel(cancel)
            case Confirm() as confirm:
                self._confirm(confirm)
            case Resend() as resend:
                self.reporter.resend(resend.run_id, resend.from_seq)
            case Say() as say:
                self._tell(say.run_id, "say", text=say.text, after=say.after, interrupt=say.interrupt)
            case Decide() as decide:
                answer = {"call_id": decide.call_id, "approved": decide.approved, "comment": decide.comment}
                self._tell(decide.run_id, "decide", **answer)
            case Compact() as compact:
                self._tell(compact.run_id, "compact", instructions=compact.instructions)
            case Drain() as drain:
                self.drain(drain.on)

    def settle(self) -> None:
        """Let go of runs that have ended and are confirmed."""
        for run in self.hand.settle():
            self.reporter.drop(run.run_id)

    def _tell(self, run_id: str, kind: str, **fields: Any) -> None:
        """Pass a word on to the run's process, or keep it until there is one."""
        if run := self.hand.get(run_id):
            run.tell(kind, **fields)

    def _cancel(self, cancel: Cancel) -> None:
        run = self.hand.get(cancel.run_id)
        if run is not None and run.identity.generation == cancel.generation:
            run.ask_to_end("cancel", cancel.reason, within=CANCEL_SECONDS)

    def _confirm(self, confirm: Confirm) -> None:
        run = self.hand.get(confirm.run_id)
        if run is not None:
            run.confirm(confirm.last_seq)
            self.settle()
