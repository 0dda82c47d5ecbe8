"""A question of a run to a person: recorded, answered by anyone who may, or by the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from drone.agent.protocols import Recorder
from drone.agent.values import AskedQuestion, Ruling
from shared.clock import Clock
from shared.errors import InterruptLoop, Suspended
from shared.events import ApprovalStep, DecisionStep

LOOK_UP_EVERY = 0.2
"""Seconds between two checks for a person's answer."""

_WAITING = {"question": "waiting for an answer", "plan": "waiting for approval of its plan"}


@dataclass(frozen=True)
class Question:
    """Asks once. No answer within `timeout` seconds is a denial, or the default of the question; 0: waits forever."""

    step: ApprovalStep
    recorder: Recorder
    clock: Clock
    timeout: float

    def ask(self, ruling: Callable[[str], Ruling | None], check: Callable[[], None]) -> Ruling:
        """Wait for the ruling. `check` is called meanwhile, and may raise what ends the waiting.

        Suspended ends it without a decision: the question stays open.
        """
        until = self.clock.now() + timedelta(seconds=self.timeout) if self.timeout else None
        self.recorder.record(self.step.model_copy(update={"until": until}))
        self.recorder.doing(_WAITING.get(self.step.about, f"waiting for approval of {self.step.tool}"), "person")
        try:
            answer = self._answer(ruling, check)
        except Suspended:
            raise
        except InterruptLoop:
            self._decided(Ruling(approved=False), "interruption")
            raise
        given = answer if answer and answer.in_time else self._without_answer()
        self._decided(given, "person" if given.in_time else "clock")
        return given

    def _decided(self, ruling: Ruling, by: Literal["person", "clock", "interruption"]) -> None:
        step = DecisionStep(
            about=self.step.about,
            call_id=self.step.call_id,
            approved=ruling.approved,
            by=by,
            comment=ruling.comment,
            answer=ruling.answer,
            who=ruling.who,
            plan=ruling.plan,
        )
        self.recorder.record(step)

    def _without_answer(self) -> Ruling:
        """The ruling of the clock."""
        default = self.step.default
        comment = f"not answered within {self.timeout:g} s"
        return Ruling(approved=default is not None, comment=comment, answer=default or "", in_time=False)

    def _answer(self, ruling: Callable[[str], Ruling | None], check: Callable[[], None]) -> Ruling | None:
        deadline = self.clock.monotonic() + self.timeout if self.timeout else None
        while (answer := ruling(self.step.call_id)) is None:
            check()
            if deadline is not None and self.clock.monotonic() >= deadline:
                return None
            self.clock.sleep(LOOK_UP_EVERY)
        return answer


def answer_text(asked: AskedQuestion, ruling: Ruling) -> str:
    """The answer to a question as its model reads it: who answered what, or that no one did."""
    if not ruling.in_time:
        missing = f"No answer: {ruling.comment}."
        if asked.default is not None:
            return f"{missing} The default counts: {asked.default}"
        return f"{missing} Decide yourself, and say in your final answer what you decided and why."
    verb = "chose" if ruling.answer in asked.choices else "answered"
    return f"{ruling.who or 'The user'} {verb}: {ruling.answer}"
