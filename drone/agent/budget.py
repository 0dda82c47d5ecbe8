"""What a run has spent, and when that is enough: answers, tokens, money and time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from drone.agent.protocols import Controls
from drone.agent.values import Ruling
from shared.clock import Clock
from shared.errors import LimitsExceeded
from shared.events import Spent, Stats, Usage
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Limits


class Budget:
    """Counts a run's spending against its limits, of which 0 is none.

    A call whose price is unknown makes the run's cost unknown; the cost limit then binds the part that is known.
    """

    def __init__(self, limits: Limits, clock: Clock, before: Spent | None = None) -> None:
        """`before` is what an earlier run had spent, from which this one goes on: it counts against the limits."""
        self.limits = limits
        self._before = before or Spent()
        self.iterations = self._before.iterations
        """Answers of the model."""
        self._clock = clock
        self._started: float | None = None
        self._paused: float | None = None
        self._waited = 0.0
        self._spent = Stats(cost_usd=0.0)
        self._known_cost = 0.0

    def start(self) -> None:
        """Let the time run from now on; a second call changes nothing."""
        if self._started is None:
            self._started = self._clock.monotonic()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let no time pass for the run while it waits for a person."""
        self._paused = self._clock.monotonic()
        try:
            yield
        finally:
            self._waited += self._clock.monotonic() - self._paused
            self._paused = None

    @contextmanager
    def at_most(self, answers: int) -> Iterator[None]:
        """Let the model give no more than so many answers meanwhile, within all the limits that hold anyway."""
        before, most = self.limits, self.iterations + answers
        fewer = min(before.max_iterations, most) if before.max_iterations else most
        self.limits = before.model_copy(update={"max_iterations": fewer})
        try:
            yield
        finally:
            self.limits = before

    @property
    def answers_left(self) -> int | None:
        """How many more the limit of answers leaves; None: there is no such limit."""
        limit = self.limits.max_iterations
        return max(0, limit - self.iterations) if limit else None

    @property
    def may_answer(self) -> bool:
        return self.answers_left != 0

    def charge(self, usage: Usage) -> None:
        """Add one answer. Answers that cannot be used are charged too: they were paid for."""
        self.iterations += 1
        self.charge_apart(usage)

    def charge_apart(self, usage: Usage) -> None:
        """Add what was spent on something else than an answer of the loop's, such as a summary."""
        self._known_cost += usage.cost_usd or 0.0
        unknown = usage.cost_usd is None or self._spent.cost_usd is None
        self._spent = self._spent.model_copy(
            update={
                "input_tokens": self._spent.input_tokens + usage.input_tokens,
                "output_tokens": self._spent.output_tokens + usage.output_tokens,
                "thinking_tokens": self._spent.thinking_tokens + usage.thinking_tokens,
                "cost_usd": None if unknown else self._known_cost,
            }
        )

    def count_tool_call(self) -> None:
        self._spent = self._spent.model_copy(update={"tool_calls": self._spent.tool_calls + 1})

    def stats(self) -> Stats:
        return self._spent.model_copy(update={"duration_ms": round(self._elapsed() * 1000)})

    def spent(self) -> Spent:
        """What counts against the limits, that of the earlier run included."""
        before = self._before
        return Spent(
            iterations=self.iterations,
            input_tokens=before.input_tokens + self._spent.input_tokens,
            output_tokens=before.output_tokens + self._spent.output_tokens,
            cost_usd=before.cost_usd + self._known_cost,
            seconds=before.seconds + self._elapsed(),
        )

    def check(self) -> None:
        """Raise LimitsExceeded, which fails the run with its work kept, when money, tokens or time are used up."""
        limits, before = self.limits, self._before
        tokens = before.input_tokens + before.output_tokens + self._spent.input_tokens + self._spent.output_tokens
        cost = before.cost_usd + self._known_cost
        if limits.max_run_seconds and before.seconds + self._elapsed() >= limits.max_run_seconds:
            raise _ended(ExitStatus.TIME_LIMIT, f"The time limit of {limits.max_run_seconds:g} s was reached.")
        if limits.cost_limit and cost >= limits.cost_limit:
            spent = f"{cost:.4f} of {limits.cost_limit:.2f} USD"
            raise _ended(ExitStatus.COST_LIMIT, f"The cost limit was reached: {spent} are spent.")
        if limits.token_limit and tokens >= limits.token_limit:
            raise _ended(ExitStatus.TOKEN_LIMIT, f"The token limit was reached: {tokens} of {limits.token_limit}.")

    def check_iterations(self) -> None:
        """Raise LimitsExceeded, which here is a success that says so, when the model has answered often enough."""
        limit = self.limits.max_iterations
        if not self.may_answer:
            raise _ended(ExitStatus.MAX_ITERATIONS, f"The limit of {limit} answers was reached; the work is kept.")

    def _elapsed(self) -> float:
        if self._started is None:
            return 0.0
        now = self._clock.monotonic() if self._paused is None else self._paused
        return now - self._started - self._waited


class BudgetedControls:
    """Controls whose `check` also looks at the budget: for whatever runs long inside a step, a command or a stream."""

    def __init__(self, controls: Controls, budget: Budget) -> None:
        self._controls = controls
        self._budget = budget

    def check(self) -> None:
        # The fleet's word comes first: a run that was told to stop must not report a limit instead.
        self._controls.check()
        self._budget.check()

    def steering(self) -> list[str]:
        return self._controls.steering()

    def follow_ups(self) -> list[str]:
        return self._controls.follow_ups()

    def ruling(self, call_id: str) -> Ruling | None:
        return self._controls.ruling(call_id)

    def compaction_asked(self) -> str | None:
        return self._controls.compaction_asked()


def _ended(status: ExitStatus, reason: str) -> LimitsExceeded:
    return LimitsExceeded(outcome=Outcome(status, reason))
