"""What a run was told by its worker, as the loop and the delivery ask for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Literal

from drone.agent.values import Ruling
from drone.runs.lease import Lease
from shared.clock import Clock
from shared.errors import Interrupted, Preempted
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome


@dataclass(frozen=True)
class Wish:
    """Somebody wants the run to end, and why."""

    kind: Literal["cancel", "stale", "stop", "terminate", "stalled"]
    """The order was canceled; another run holds it by now; the drone stops, and the order goes back to the queue; an
    operator ended the run; nothing came of it for too long."""
    reason: str


_WISHES = ("cancel", "stale", "terminate", "stalled", "stop")
"""The heaviest first."""


class RunControls:
    """Implements `drone.agent.protocols.Controls` for a run that a worker watches. Threads may share one."""

    def __init__(self, clock: Clock, valid_until: float) -> None:
        self.lease = Lease(clock)
        self.lease.extend(valid_until)
        self._lock = threading.Lock()
        self._wish: Wish | None = None
        self._steering: list[str] = []
        self._follow_ups: list[str] = []
        self._interruptions: list[str] = []
        self._rulings: dict[str, Ruling] = {}
        self._compact: str | None = None

    def told(self, message: dict[str, Any]) -> None:
        """Take in what the worker said; what this version does not know is of no meaning to it."""
        kind = message["kind"]
        if kind == "lease":
            self.lease.extend(message["until"])
            return
        with self._lock:
            if kind in _WISHES:
                self._wished(Wish(kind, message["reason"] or "the order was canceled"))
            elif kind == "say":
                self._said(message)
            elif kind == "decide":
                self._rulings[message["call_id"]] = Ruling(message["approved"], message["comment"])
            elif kind == "compact":
                self._compact = message["instructions"]

    @property
    def wish(self) -> Wish | None:
        """Why the run is to end, if it is."""
        with self._lock:
            if self._wish is None and self.lease.abandoned():
                self._wish = Wish("stop", "the control plane could not be reached for over ten minutes")
            return self._wish

    def check(self) -> None:
        """Return if the loop may go on. Raises Preempted or Interrupted."""
        self.check_end()
        with self._lock:
            texts, self._interruptions = self._interruptions, []
        if texts:
            raise Interrupted(*(Message(role="user", content=text) for text in texts))

    def check_end(self) -> None:
        """As `check`, around the loop: what people have to say waits for it. Raises Preempted."""
        wish = self.wish
        if wish is not None:
            raise Preempted(outcome=Outcome(ExitStatus.CANCELED, wish.reason))

    def steering(self) -> list[str]:
        """Take what people said that enters after the tool results."""
        with self._lock:
            taken, self._steering = self._steering, []
            # Nothing runs that could be broken off: an interruption is a word like others now.
            taken += self._interruptions
            self._interruptions = []
            return taken

    def follow_ups(self) -> list[str]:
        """Take what people said that waits until the model stops."""
        with self._lock:
            taken, self._follow_ups = self._follow_ups, []
            return taken

    def ruling(self, call_id: str) -> Ruling | None:
        """Take what a person said of a call that waits; None until then."""
        with self._lock:
            return self._rulings.pop(call_id, None)

    def compaction_asked(self) -> str | None:
        """Take the instructions of a compaction that somebody asked for."""
        with self._lock:
            asked, self._compact = self._compact, None
            return asked

    def _wished(self, wish: Wish) -> None:
        """The first wish counts, but one that is heavier replaces it: a stop gives the order back, a cancel ends it."""
        if self._wish is None or _WISHES.index(wish.kind) < _WISHES.index(self._wish.kind):
            self._wish = wish

    def _said(self, message: dict[str, Any]) -> None:
        if message.get("interrupt"):
            self._interruptions.append(message["text"])
        elif message["after"]:
            self._follow_ups.append(message["text"])
        else:
            self._steering.append(message["text"])
