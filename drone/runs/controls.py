"""The worker's messages to a run, as the loop and the delivery query them."""

from __future__ import annotations

import threading

from drone.agent.values import Ruling
from drone.runs.lease import RunLease
from drone.runs.pipe import EndRun, LeaseExtended, ToRun
from drone.runs.stop_requests import Wish
from shared.clock import Clock
from shared.control import Compact, Decide, Say
from shared.errors import Interrupted, Preempted
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome


class RunControls:
    """Implements `drone.agent.protocols.Controls` for a run that a worker watches. Threads may share one."""

    def __init__(self, clock: Clock, valid_until: float) -> None:
        self.lease = RunLease(clock)
        self.lease.extend(valid_until)
        self._lock = threading.Lock()
        self._wish: Wish | None = None
        self._steering: list[str] = []
        self._follow_ups: list[str] = []
        self._interruptions: list[str] = []
        self._rulings: dict[str, Ruling] = {}
        self._compact: str | None = None

    def receive(self, message: ToRun) -> None:
        """Handle a message from the worker."""
        with self._lock:
            match message:
                case LeaseExtended():
                    self.lease.extend(message.until)
                case EndRun():
                    if (wish := message.as_wish()).outweighs(self._wish):
                        self._wish = wish
                case Say():
                    self._said(message)
                case Decide():
                    self._rulings[message.call_id] = Ruling(
                        message.approved, message.comment, message.raise_usd, message.finish
                    )
                case Compact():
                    self._compact = message.instructions

    @property
    def wish(self) -> Wish | None:
        """Why the run is to end, if it is."""
        with self._lock:
            if self._wish is None and self.lease.abandoned():
                self._wish = Wish("stop", "the control plane was unreachable for more than 10 minutes")
            return self._wish

    def check(self) -> None:
        """Return if the loop may continue. Raises Preempted or Interrupted."""
        self.check_end()
        with self._lock:
            texts, self._interruptions = self._interruptions, []
        if texts:
            raise Interrupted(*(Message(role="user", content=text) for text in texts))

    def check_end(self) -> None:
        """Like `check`, outside the loop: user messages wait for the loop. Raises Preempted."""
        wish = self.wish
        if wish is not None:
            raise Preempted(outcome=Outcome(ExitStatus.CANCELED, wish.reason))

    def steering(self) -> list[str]:
        """Take the user messages that enter after the tool results."""
        with self._lock:
            taken, self._steering = self._steering, []
            # Nothing is running that could be interrupted: an interruption is now an ordinary message.
            taken += self._interruptions
            self._interruptions = []
            return taken

    def follow_ups(self) -> list[str]:
        """Take the user messages that wait until the model stops."""
        with self._lock:
            taken, self._follow_ups = self._follow_ups, []
            return taken

    def ruling(self, call_id: str) -> Ruling | None:
        """Take a user's decision about a waiting call; None until there is one."""
        with self._lock:
            return self._rulings.pop(call_id, None)

    def compaction_asked(self) -> str | None:
        """Take the instructions of a requested compaction."""
        with self._lock:
            asked, self._compact = self._compact, None
            return asked

    def _said(self, say: Say) -> None:
        if say.interrupt:
            self._interruptions.append(say.text)
        elif say.after:
            self._follow_ups.append(say.text)
        else:
            self._steering.append(say.text)
