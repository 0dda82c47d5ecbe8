"""The run's controls, extended by requests of extensions and by signals that arrived during a call of an extension."""

from __future__ import annotations

import threading

from drone.agent.protocols import Controls
from drone.agent.values import Ruling, UserMessage
from shared.errors import Halted, Interrupted, InterruptLoop
from shared.outcome import ExitStatus, Outcome


class HeldControls:
    """Implements `drone.agent.protocols.Controls` around the run's controls. Threads may share one.

    A signal must not interrupt a hook: a step could be recorded and yet be missing from the transcript. So it is held
    here and raised at the loop's next `check`.
    """

    def __init__(self, controls: Controls) -> None:
        self._controls = controls
        self._lock = threading.Lock()
        self._held: list[InterruptLoop] = []
        self._compact: str | None = None
        self._end: str | None = None
        self._end_after_step: str | None = None
        self._step_is_over = False

    # --- for the code that waits for an extension ------------------------------------

    def stop_waiting(self) -> bool:
        """Whether the run has to end. A user's interruption does not end it, and is held until the next check."""
        if not self._ends():
            # Under the lock: a message is always either here or in the run's controls.
            with self._lock:
                try:
                    self._controls.check()
                except InterruptLoop as signal:
                    self._held.append(signal)
        return self._ends()

    # --- for the context object ---------------------------------------------------------

    def is_ending(self) -> bool:
        """Whether the run is to end: the fleet, a limit or an extension wants it."""
        return self._end is not None or self._end_after_step is not None or self.stop_waiting()

    def end(self, reason: str) -> None:
        """End the run at the next check, also within a call."""
        self._end = reason

    def end_after_step(self, reason: str) -> None:
        """End the run when the calls of the model's last message are done."""
        self._end_after_step = reason

    def ask_compaction(self, instructions: str) -> None:
        self._compact = instructions

    def left_over(self) -> list[str]:
        """Take the user messages in held signals, which no check will raise any more."""
        with self._lock:
            return self._interruptions()

    # --- for the loop ---------------------------------------------------------------------

    def check(self) -> None:
        """Like the check of the run's controls. Also raises Halted when an extension wants the run to end."""
        if self._held:
            raise self._next_held()
        self._controls.check()
        reason = self._end_after_step if self._end is None and self._step_is_over else self._end
        if reason is not None:
            raise Halted(outcome=Outcome(ExitStatus.HALTED, f"An extension ended the run: {reason}"))

    def steering(self) -> list[UserMessage]:
        if self._end_after_step is not None:
            # The loop calls this when the calls of a message are done; the check that follows ends the run.
            self._step_is_over = True
            return []
        with self._lock:
            # Nothing is running that could be interrupted: a held interruption is now an ordinary message.
            held = [UserMessage(text) for text in self._interruptions()]
            return held or self._controls.steering()

    def follow_ups(self) -> list[UserMessage]:
        return [] if self._end_after_step is not None else self._controls.follow_ups()

    def pending(self) -> bool:
        """Whether there are user messages that the model has not received yet."""
        return bool(self._held) or self._controls.pending()

    def ruling(self, call_id: str) -> Ruling | None:
        return self._controls.ruling(call_id)

    def compaction_asked(self) -> str | None:
        asked, self._compact = self._compact, None
        return self._controls.compaction_asked() if asked is None else asked

    def _ends(self) -> bool:
        return any(not isinstance(signal, Interrupted) for signal in self._held)

    def _interruptions(self) -> list[str]:
        """Take the user messages in held signals. Holds the lock."""
        taken = [signal for signal in self._held if isinstance(signal, Interrupted)]
        self._held = [signal for signal in self._held if signal not in taken]
        return [message.content for signal in taken for message in signal.messages]

    def _next_held(self) -> InterruptLoop:
        """Take the signal that ends the run, if there is one, otherwise the first."""
        with self._lock:
            self._held.sort(key=lambda signal: isinstance(signal, Interrupted))
            return self._held.pop(0)
