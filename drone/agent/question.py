"""A question of a run to a person: recorded, answered by anyone who may, or by the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from drone.agent.protocols import Recorder
from drone.agent.values import Ruling
from shared.clock import Clock
from shared.errors import InterruptLoop
from shared.events import ApprovalStep, DecisionStep

LOOK_UP_EVERY = 0.2
"""Seconds between two checks for a person's answer."""


@dataclass(frozen=True)
class Question:
    """Asks for approval once. No answer within `timeout` seconds is a denial; 0: it waits forever."""

    step: ApprovalStep
    recorder: Recorder
    clock: Clock
    timeout: float

    def ask(self, ruling: Callable[[str], Ruling | None], check: Callable[[], None]) -> Ruling:
        """Wait for the ruling. `check` is called meanwhile, and may raise what ends the waiting."""
        call_id, timeout = self.step.call_id, self.timeout
        until = self.clock.now() + timedelta(seconds=timeout) if timeout else None
        self.recorder.record(self.step.model_copy(update={"until": until}))
        self.recorder.doing(f"waiting for approval of {self.step.tool}", "person")
        try:
            answer = self._answer(ruling, check)
        except InterruptLoop:
            self.recorder.record(DecisionStep(call_id=call_id, approved=False, by="interruption"))
            raise
        given = answer or Ruling(approved=False, comment=f"not answered within {timeout:g} s")
        by = "person" if answer else "clock"
        self.recorder.record(DecisionStep(call_id=call_id, approved=given.approved, by=by, comment=given.comment))
        return given

    def _answer(self, ruling: Callable[[str], Ruling | None], check: Callable[[], None]) -> Ruling | None:
        deadline = self.clock.monotonic() + self.timeout if self.timeout else None
        while (answer := ruling(self.step.call_id)) is None:
            check()
            if deadline is not None and self.clock.monotonic() >= deadline:
                return None
            self.clock.sleep(LOOK_UP_EVERY)
        return answer
