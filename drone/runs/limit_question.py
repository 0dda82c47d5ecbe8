"""Asks a person what to do at a limit of an order: raise it, stop or, if it is money, finish with a summary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.protocols import Controls, Recorder
from drone.agent.question import Question
from drone.agent.values import Ruling
from drone.runs.purse import MoneyUsedUp, Purse
from shared.clock import Clock
from shared.errors import Interrupted, Suspended
from shared.events import ApprovalStep, LimitKind
from shared.messages import Message
from shared.outcome import ExitStatus
from shared.work_order import WorkOrder

SUMMARIZE = (
    "The cost limit of this order is reached, and no further work is possible. Do not call any tool. Answer with a "
    "summary: what is done, what is left, and how to continue."
)


class LimitQuestion:
    """One question at a time, answered by anyone who may, or by the clock, which stops the run."""

    def __init__(self, recorder: Recorder, clock: Clock, timeout: float, budget: RunBudget | None) -> None:
        self._recorder = recorder
        self._clock = clock
        self._timeout = timeout
        self._budget = budget
        self._asked = 0
        self._ended: MoneyUsedUp | None = None
        """Why the run makes no further call, or only one more for its summary."""
        self._calls_left = 1

    def check_calls(self) -> None:
        """Raise MoneyUsedUp after the summary, and after a denial."""
        if self._ended is not None and not self._calls_left:
            raise self._ended

    def count_call(self) -> bool:
        """A call was reserved. Returns whether it is the one for the summary."""
        if self._ended is None:
            return False
        self._calls_left -= 1
        return True

    def give_back_call(self) -> None:
        """The call for the summary was not answered: it may be made again."""
        self._calls_left += 1

    def ask(
        self, used_up: MoneyUsedUp, purse: Purse, ruling: Callable[[str], Ruling | None], check: Callable[[], None]
    ) -> None:
        """Return if the call may be tried again.

        Raises `used_up` if the run is to stop, and Interrupted with the request for a summary if it is to finish.
        """
        if self._ended is not None:
            if not self._calls_left or used_up.about != "limit" or not used_up.least:
                raise used_up
            # The summary of a parent whose child met the limit: its question is longer.
            purse.raise_limit(used_up.least)
            return
        self._asked += 1
        step = ApprovalStep(about=used_up.about, call_id=f"money-{self._asked}", tool="model call", why=used_up.reason)
        # The wait for a person is no work of the run's.
        with self._budget.waiting() if self._budget is not None else nullcontext():
            try:
                answer = Question(step, self._recorder, self._clock, self._timeout).ask(ruling, check)
            except Suspended:
                # Undecided: if the run declines, it asks this question again.
                self._asked -= 1
                raise
        if answer.finish and used_up.about == "limit":
            self._ended = used_up
            if self._budget is not None:
                self._budget.ends_with = used_up.outcome
            purse.raise_limit(used_up.least)
            raise Interrupted(Message(role="user", content=SUMMARIZE))
        if not answer.approved:
            # Also for the parent of a child agent, which continues when that ends.
            self._ended, self._calls_left = used_up, 0
            raise used_up
        if used_up.about == "limit":
            purse.raise_limit(answer.raise_usd or purse.limit)


class RunLimitQuestion:
    """Asks at the limits of steps and time; the loop calls it before it ends there."""

    def __init__(self, recorder: Recorder, controls: Controls, clock: Clock, timeout: float, budget: RunBudget) -> None:
        """`controls` without the budget: its limit is reached already."""
        self._recorder = recorder
        self._controls = controls
        self._clock = clock
        self._timeout = timeout
        self._budget = budget
        self._asked = 0

    def __call__(self, reached: ExitStatus) -> bool:
        """Whether the limit was raised; false: the run ends. Raises what the controls raise meanwhile."""
        limits = self._budget.limits
        if self._budget.is_narrowed or reached not in {ExitStatus.MAX_ITERATIONS, ExitStatus.TIME_LIMIT}:
            return False
        if reached is ExitStatus.MAX_ITERATIONS:
            ruling = self._ask("steps", f"The limit of {limits.max_iterations} steps is reached")
            self._budget.raise_limits(steps=(ruling.raise_steps or limits.max_iterations) if ruling.approved else 0)
        else:
            ruling = self._ask("time", f"The time limit of {limits.max_run_seconds:g} s is reached")
            seconds = (ruling.raise_seconds or limits.max_run_seconds) if ruling.approved else 0
            self._budget.raise_limits(seconds=seconds)
        return ruling.approved

    def _ask(self, limit: LimitKind, why: str) -> Ruling:
        self._asked += 1
        step = ApprovalStep(about="limit", call_id=f"{limit}-{self._asked}", tool="run", why=why, limit=limit)
        with self._budget.waiting():
            question = Question(step, self._recorder, self._clock, self._timeout)
            try:
                return question.ask(self._controls.ruling, self._controls.check)
            except Suspended:
                self._asked -= 1
                raise


def limit_question(order: WorkOrder, recorder: Recorder, controls: Controls, clock: Clock) -> LimitQuestion | None:
    """For an order that asks at its limits; None for one that stops."""
    if order.money is None or order.money.on_limit != "ask":
        return None
    budget = controls.budget if isinstance(controls, BudgetedControls) else None
    if budget is not None:
        budget.asks = True
    return LimitQuestion(recorder, clock, order.limits.approval_timeout, budget)


def without_question(order: WorkOrder) -> WorkOrder:
    """The order for a model call outside the loop: at a limit no user is asked on its behalf, and it is not made."""
    if order.money is None:
        return order
    return order.model_copy(update={"money": order.money.model_copy(update={"on_limit": "stop"})})
