"""People who answer a run in memory: each of their answers comes when it has waited for half a minute."""

from __future__ import annotations

from collections.abc import Mapping

from drone.agent.in_memory import QuietControls
from drone.agent.values import Ruling
from tests.support.clocks import HandClock

ANSWERS_AFTER = 30.0
"""Seconds."""


class Person(HandClock):
    """A clock by which a person answers what waits, or has a signal raised, one after the other.

    `answers` has a ruling for the id of what waits, or a signal under any name.
    """

    def __init__(self, controls: QuietControls, answers: Mapping[str, Ruling | BaseException]) -> None:
        super().__init__()
        self.controls, self.answers, self.waited = controls, dict(answers), 0.0

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.waited += seconds
        if self.waited < ANSWERS_AFTER or not self.answers:
            return
        self.waited = 0.0
        name = next(iter(self.answers))
        given = self.answers.pop(name)
        if isinstance(given, Ruling):
            self.controls.rulings[name] = given
        else:
            self.controls.signal = given
