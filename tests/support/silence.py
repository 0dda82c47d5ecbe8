"""The silence of a model's endpoint, as long as its clock says and not as the machine's does."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.clocks import HandClock
from tests.support.scripted import Called


def silent_for_long(called: Called, condition: Callable[[], bool]) -> None:
    """While the condition is true, an hour passes each time that nothing arrived for a moment, until the first retry.

    At other times the clock of the call, which a test sets by hand, stands still.
    """
    clock = called.clock
    assert isinstance(clock, HandClock)

    def check() -> None:
        if condition() and not called.recorder.bodies:
            clock.sleep(3600)

    called.controls.check = check  # type: ignore[method-assign]
