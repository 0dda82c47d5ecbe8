"""What a run has spent, and its limits: answers, tokens, money and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from drone.agent.batch import check_here
from drone.agent.protocols import Controls
from drone.agent.values import Ruling, UserMessage
from shared.clock import Clock
from shared.errors import LimitsExceeded
from shared.events import MAX_COUNT, ChargeStep, Spent, Stats, Usage
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Limits


class RunBudget:
    """Counts a run's spending against its limits; a limit of 0 means no limit.

    A call whose price is unknown makes the run's price unknown; the cost limit then applies to the known part.
    """

    def __init__(self, limits: Limits, clock: Clock, before: Spent | None = None) -> None:
        """`before` is the spending of the earlier run that this one resumes: it counts against the limits."""
        self.limits = limits
        self._before = before or Spent()
        self.iterations = self._before.iterations
        """Number of model answers."""
        self._clock = clock
        self._started: float | None = None
        self._paused: float | None = None
        self._waited = 0.0
        self._spent = Stats(cost_usd=0.0)
        self._known_cost = 0.0
        self.is_narrowed = False
        """A reminder allows only a few more answers: that is no limit of the user's."""
        self.asks = False
        """The money is bounded before each call, and at its limit a person is asked: no check may end the run first."""
        self.ends_with: Outcome | None = None
        """How the run ends after one more answer, its summary: no call is left to compact the conversation."""
        self.on_apart: Callable[[Usage], None] | None = None
        """Called with spending that is in no answer of the loop, to record it."""

    def start(self) -> None:
        """Start the clock; a second call has no effect."""
        if self._started is None:
            self._started = self._clock.monotonic()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Pause the run's clock while it waits for a person."""
        self._paused = self._clock.monotonic()
        try:
            yield
        finally:
            self._waited += self._clock.monotonic() - self._paused
            self._paused = None

    @contextmanager
    def at_most(self, answers: int) -> Iterator[None]:
        """Allow at most this many more answers inside the block; all other limits still apply."""
        before, most = self.limits, self.iterations + answers
        fewer = min(before.max_iterations, most) if before.max_iterations else most
        self.limits = before.model_copy(update={"max_iterations": fewer})
        self.is_narrowed = True
        try:
            yield
        finally:
            self.limits = before
            self.is_narrowed = False

    def raise_limits(self, *, steps: int = 0, seconds: float = 0) -> None:
        """Allow this much more: a person raised the limit."""
        limits = self.limits
        more = {"max_iterations": limits.max_iterations + steps, "max_run_seconds": limits.max_run_seconds + seconds}
        self.limits = limits.model_copy(update=more)

    @property
    def waited(self) -> float:
        """Seconds spent waiting for people so far, in waits that are over."""
        return self._waited

    @property
    def answers_left(self) -> int | None:
        """Answers left within the limit; None: there is no limit."""
        limit = self.limits.max_iterations
        return max(0, limit - self.iterations) if limit else None

    @property
    def may_answer(self) -> bool:
        return self.answers_left != 0

    def charge(self, usage: Usage) -> None:
        """Add one answer. Unusable answers are charged too: they were paid for."""
        self.iterations += 1
        self._add(usage)

    def charge_apart(self, usage: Usage) -> None:
        """Add spending on anything other than an answer in the loop, such as a summary."""
        self._add(usage)
        if self.on_apart is not None:
            self.on_apart(usage)

    def charge_recorded(self, usage: Usage) -> None:
        """Add spending that its own step reports, such as the reviewer's."""
        self._add(usage)

    def _add(self, usage: Usage) -> None:
        self._known_cost += usage.cost_usd or 0.0
        unknown = usage.cost_usd is None or self._spent.cost_usd is None
        self._spent = self._spent.model_copy(
            update={
                "input_tokens": self._spent.input_tokens + usage.input_tokens,
                "output_tokens": self._spent.output_tokens + usage.output_tokens,
                "thinking_tokens": self._spent.thinking_tokens + usage.thinking_tokens,
                "cached_tokens": self._spent.cached_tokens + usage.cached_tokens,
                "cost_usd": None if unknown else self._known_cost,
            }
        )

    def count_tool_call(self) -> None:
        self._spent = self._spent.model_copy(update={"tool_calls": self._spent.tool_calls + 1})

    def stats(self) -> Stats:
        """The totals so far; a run of more than 24 days reports the largest number that the control plane accepts."""
        return self._spent.model_copy(update={"duration_ms": min(round(self._elapsed() * 1000), MAX_COUNT)})

    def spent(self) -> Spent:
        """What counts against the limits, including the earlier run."""
        before = self._before
        return Spent(
            iterations=self.iterations,
            input_tokens=before.input_tokens + self._spent.input_tokens,
            output_tokens=before.output_tokens + self._spent.output_tokens,
            cost_usd=before.cost_usd + self._known_cost,
            seconds=before.seconds + self._elapsed(),
        )

    def check(self) -> None:
        """Raise LimitsExceeded, which fails the run but keeps its work, when money, tokens or time are used up."""
        limits, before = self.limits, self._before
        tokens = before.input_tokens + before.output_tokens + self._spent.input_tokens + self._spent.output_tokens
        cost = before.cost_usd + self._known_cost
        if limits.max_run_seconds and before.seconds + self._elapsed() >= limits.max_run_seconds:
            raise _ended(ExitStatus.TIME_LIMIT, f"The time limit of {limits.max_run_seconds:g} s was reached.")
        if limits.cost_limit and cost >= limits.cost_limit and not self.asks:
            spent = f"{cost:.4f} of {limits.cost_limit:.2f} USD"
            raise _ended(ExitStatus.COST_LIMIT, f"The cost limit was reached: {spent} spent.")
        if limits.token_limit and tokens >= limits.token_limit:
            raise _ended(ExitStatus.TOKEN_LIMIT, f"The token limit was reached: {tokens} of {limits.token_limit}.")

    def check_iterations(self) -> None:
        """Raise LimitsExceeded when the limit of answers is reached; the run then succeeds, with this as its reason."""
        limit = self.limits.max_iterations
        if not self.may_answer:
            raise _ended(ExitStatus.MAX_ITERATIONS, f"The limit of {limit} steps was reached; the work is kept.")

    def _elapsed(self) -> float:
        if self._started is None:
            return 0.0
        now = self._clock.monotonic() if self._paused is None else self._paused
        return now - self._started - self._waited


class BudgetedControls:
    """Controls whose `check` includes the budget: for long operations inside a step, such as commands and streams.

    In a call that runs beside others, it is the check of their batch, for which the loop's thread asks.
    """

    def __init__(self, controls: Controls, budget: RunBudget) -> None:
        self._controls = controls
        self._budget = budget

    @property
    def budget(self) -> RunBudget:
        return self._budget

    def check(self) -> None:
        if check_here():
            return
        # The fleet's request comes first: a run that was asked to stop must not report a limit instead.
        self._controls.check()
        self._budget.check()

    def steering(self) -> list[UserMessage]:
        return self._controls.steering()

    def follow_ups(self) -> list[UserMessage]:
        return self._controls.follow_ups()

    def pending(self) -> bool:
        return self._controls.pending()

    def ruling(self, call_id: str) -> Ruling | None:
        return self._controls.ruling(call_id)

    def compaction_asked(self) -> str | None:
        return self._controls.compaction_asked()


def recorded_apart(
    record: Callable[[ChargeStep], object], about: Literal["summary", "service"]
) -> Callable[[Usage], None]:
    """For `RunBudget.on_apart`: records the spending as an event, which survives the run."""

    def charged(usage: Usage) -> None:
        record(ChargeStep(about=about, usage=usage))

    return charged


def _ended(status: ExitStatus, reason: str) -> LimitsExceeded:
    return LimitsExceeded(outcome=Outcome(status, reason))
