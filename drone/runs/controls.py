"""The worker's messages to a run, as the loop and the delivery query them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.values import Ruling, UserMessage
from drone.runs.context import RunWishes
from drone.runs.lease import RunLease
from drone.runs.pipe import EndRun, LeaseExtended, ToRun
from drone.runs.stop_requests import Wish
from shared.clock import Clock
from shared.control import Compact, Decide, Say, Suspend, TakeBack
from shared.errors import Interrupted, Preempted, Suspended
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome


class RunControls:
    """Implements `drone.agent.protocols.Controls` for a run that a worker watches. Threads may share one."""

    def __init__(self, clock: Clock, valid_until: float) -> None:
        self.lease = RunLease(clock)
        self.lease.extend(valid_until)
        self._lock = threading.Lock()
        self._wish: Wish | None = None
        self._steering: list[Say] = []
        self._follow_ups: list[Say] = []
        self._interruptions: list[Say] = []
        self.on_taken_back: Callable[[Sequence[Say]], None] = lambda _: None
        """Called with the messages that were taken back before the loop took them."""
        self._is_over = False
        self._rulings: dict[str, Ruling] = {}
        self._suspend: set[str] = set()
        """Ids of calls for whose answer this run is not to wait any longer."""
        self._compact: str | None = None
        self._review: list[str] = []

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
                case TakeBack():
                    self._take_back(message)
                case Compact():
                    self._compact = message.instructions
                case Decide() | Suspend():
                    self._answered(message)

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
            taken, self._interruptions = self._interruptions, []
        if taken:
            raise Interrupted(*(Message(role="user", content=say.text) for say in taken))

    def check_end(self) -> None:
        """Like `check`, outside the loop: user messages wait for the loop. Raises Preempted."""
        wish = self.wish
        if wish is not None:
            raise Preempted(outcome=Outcome(ExitStatus.CANCELED, wish.reason))

    def steering(self) -> list[UserMessage]:
        """Take the user messages that enter after the tool results."""
        with self._lock:
            # Nothing is running that could be interrupted: an interruption is now an ordinary message.
            self._steering += self._interruptions
            self._interruptions = []
            return _next(self._steering)

    def follow_ups(self) -> list[UserMessage]:
        """Take the user messages that wait until the model stops."""
        with self._lock:
            return _next(self._follow_ups)

    def left_over(self) -> list[UserMessage]:
        """Take all user messages that the loop has not taken, when the run has come to its end."""
        with self._lock:
            self._is_over = True
            rest = [*self._steering, *self._interruptions, *self._follow_ups]
            self._steering, self._interruptions, self._follow_ups = [], [], []
            return [UserMessage(say.text, say.message) for say in rest]

    def pending(self) -> bool:
        """Whether there are user messages that the loop has not taken."""
        with self._lock:
            return bool(self._steering or self._follow_ups or self._interruptions)

    def review_comments(self) -> tuple[str, ...]:
        """The ids of all review comments that the loop was told of, in messages since the run began."""
        with self._lock:
            return tuple(self._review)

    def ruling(self, call_id: str) -> Ruling | None:
        """Take a user's decision about a waiting call; None until there is one.

        Raises Suspended once, if the run is not to wait for it; the run may decline by asking again.
        """
        with self._lock:
            if call_id not in self._rulings and call_id in self._suspend:
                self._suspend.discard(call_id)
                raise Suspended
            return self._rulings.pop(call_id, None)

    def compaction_asked(self) -> str | None:
        """Take the instructions of a requested compaction."""
        with self._lock:
            asked, self._compact = self._compact, None
            return asked

    def _said(self, say: Say) -> None:
        self._review += say.review
        if say.interrupt:
            self._interruptions.append(say)
        elif say.after:
            self._follow_ups.append(say)
        else:
            self._steering.append(say)

    def _answered(self, message: Decide | Suspend) -> None:
        if isinstance(message, Suspend):
            self._suspend.add(message.call_id)
        else:
            self._rulings[message.call_id] = _ruling(message)

    def _take_back(self, message: TakeBack) -> None:
        taken: list[Say] = []
        for queue in (self._steering, self._follow_ups, self._interruptions):
            taken += [say for say in queue if say.message in message.messages]
            queue[:] = [say for say in queue if say.message not in message.messages]
        # Under the lock: once `left_over` was called, the run's last event follows.
        if taken and not self._is_over:
            self.on_taken_back(taken)


class EndControls(BudgetedControls):
    """For a model call outside the loop: it ends with the run and at its limits; users' messages wait for the loop."""

    def __init__(self, controls: RunWishes, budget: RunBudget) -> None:
        super().__init__(controls, budget)
        self._wishes = controls

    def check(self) -> None:
        self._wishes.check_end()
        self.budget.check()


def _next(queue: list[Say]) -> list[UserMessage]:
    """Take the messages that the model is given together: up to the first that it answers alone, or only that one."""
    first_alone = next((number for number, say in enumerate(queue) if say.alone), len(queue))
    taken = queue[: first_alone or 1]
    del queue[: len(taken)]
    return [UserMessage(say.text, say.message) for say in taken]


def _ruling(decided: Decide) -> Ruling:
    return Ruling(
        approved=decided.approved,
        comment=decided.comment,
        raise_usd=decided.raise_usd,
        finish=decided.finish,
        answer=decided.answer,
        who=decided.who,
        raise_steps=decided.raise_steps,
        raise_seconds=decided.raise_seconds,
        plan=decided.plan,
        in_time=decided.in_time,
    )
