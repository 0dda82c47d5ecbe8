"""When an ephemeral drone leaves: it had nothing to do for a while, it took its number of orders, it was drained, or it
never reached the broker.

It leaves once the control plane has confirmed everything that its runs recorded: its disk does not outlive it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from drone.worker.app import Slots
from drone.worker.leave_rule import LeaveRule
from drone.worker.status_line import tell
from drone.worker.tracked_runs import TrackedRuns
from shared.clock import Clock
from shared.durations import roughly
from shared.errors import Unreachable

CHECK_SECONDS = 0.5
INTRODUCTION_SECONDS = 300.0
"""A drone waits at least this long for the broker before it gives up, even if it may have nothing to do for less."""
LAST_SECONDS = 30.0
"""For the control plane to confirm the runs that were asked to give their orders back."""


class Leaving:
    """Decides when the drone takes no more orders, and when it may end."""

    def __init__(self, rule: LeaveRule, slots: Slots, runs: TrackedRuns, clock: Clock) -> None:
        self._rule = rule
        self._slots = slots
        self._runs = runs
        self._clock = clock
        self._worked_at = clock.monotonic()
        self._deadline: float | None = None
        self.decided = False
        """It leaves, and no signal asked for that."""

    def wait_for(self, introduced: threading.Event, stopping: threading.Event) -> bool:
        """Wait until the drone can take orders; False if it stops before.

        Raises Unreachable if that takes too long and nothing is to be reported.
        """
        began = self._clock.monotonic()
        limit = max(self._rule.idle_s, INTRODUCTION_SECONDS)
        while not introduced.wait(CHECK_SECONDS):
            now = self._clock.monotonic()
            if stopping.is_set():
                return False
            if not self._at_work() and now - began >= limit:
                raise Unreachable(
                    f"the broker did not serve this drone within {roughly(limit)}",
                    code="E-BROKER-UNREACHABLE",
                    next="check FLEET_PUBLIC_BROKER_URL of the control plane, and the network from here to there",
                )
        return True

    def watch(self, stopping: threading.Event, leave: Callable[[], None]) -> None:
        """Wait until the drone is to leave and everything is confirmed, then call `leave`; return early if it stops."""
        self._worked_at = self._clock.monotonic()
        while not stopping.wait(CHECK_SECONDS):
            if not self._slots.leaving and (why := self._why()):
                tell(f"{why}: leaving")
                self._slots.leaving = True
            if self._slots.leaving and not self._at_work():
                self.decided = True
                leave()
                return

    def _why(self) -> str:
        """Why it leaves; '' while it stays."""
        now = self._clock.monotonic()
        if self._at_work():
            self._worked_at = now
            return ""
        # Asked last: a message that is being carried out may still be skipped, and then it does not count.
        if self._slots.spent:
            plural = "" if self._rule.orders == 1 else "s"
            return f"took {self._rule.orders} order{plural}"
        if self._slots.paused:
            return "drained by the control plane"
        idle = now - self._worked_at >= self._rule.idle_s
        return f"nothing to do for {roughly(self._rule.idle_s)}" if idle else ""

    def _at_work(self) -> bool:
        return self._slots.active > 0 or bool(self._runs.all())

    def hurry(self, within: float = LAST_SECONDS) -> None:
        """Let `must_wait` wait for this many seconds only, from now on."""
        soon = self._clock.monotonic() + within
        self._deadline = soon if self._deadline is None else min(self._deadline, soon)

    def must_wait(self) -> bool:
        """Whether a drone that is to stop has to wait, as the control plane has not confirmed everything."""
        late = self._deadline is not None and self._clock.monotonic() >= self._deadline
        return not late and bool(self._runs.all())
