"""What each control message means for this drone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from drone.reporting.reporter import Reporter
from drone.worker.hand import Hand
from shared.control import Cancel, Confirm, ControlMessage, Decide, Drain, Resend, Say

log = logging.getLogger(__name__)

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
                if run := self.hand.get(say.run_id):
                    run.tell("say", text=say.text, after=say.after)
            case Drain() as drain:
                self.drain(drain.on)
            case Decide() as decide:
                log.warning("run %s: this drone asks for no approvals, so there is nothing to decide", decide.run_id)

    def settle(self) -> None:
        """Let go of runs that have ended and are confirmed."""
        for run in self.hand.settle():
            self.reporter.drop(run.run_id)

    def _cancel(self, cancel: Cancel) -> None:
        run = self.hand.get(cancel.run_id)
        if run is not None and run.identity.generation == cancel.generation:
            run.ask_to_end("cancel", cancel.reason, within=CANCEL_SECONDS)

    def _confirm(self, confirm: Confirm) -> None:
        run = self.hand.get(confirm.run_id)
        if run is not None:
            run.confirm(confirm.last_seq)
            self.settle()
