"""The end of a run: one typed status and one sentence for people."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from shared.states import ENDED, OrderStatus


class ExitStatus(StrEnum):
    """Each way a run or an order can end; a contract with scripts that read `exit_status`."""

    SUBMITTED = "submitted"
    STOPPED = "stopped"
    """The model answered without tool calls."""
    MAX_ITERATIONS = "max_iterations"
    """Counts as a success: the calls of the last message were run."""
    COST_LIMIT = "cost_limit"
    TIME_LIMIT = "time_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - not a secret
    FORMAT_ERRORS = "format_errors"
    MODEL_ERROR = "model_error"
    LOST = "lost"
    REFUSED = "refused"
    CANCELED = "canceled"
    VERIFICATION_FAILED = "verification_failed"
    HALTED = "halted"
    """A guardrail ended the run, or the drone as it used too much memory; the work is kept."""
    NO_PROGRESS = "no_progress"
    """The run made no progress for longer than its limit; the work is kept."""
    PLAN_UNANSWERED = "plan_unanswered"
    """The plan was not approved in time; nothing was changed."""


SUCCESSFUL = frozenset({ExitStatus.SUBMITTED, ExitStatus.STOPPED, ExitStatus.MAX_ITERATIONS})


class OrderOutcome(StrEnum):
    """What came of an ended order, as people see it. It is never greener than the work.

    The status says how the order is routed: a run at its limit of steps is a success there (S-083).
    """

    DONE = "done"
    UNCHANGED = "unchanged"
    """Nothing had to change."""
    ASKS = "asks"
    """It changed nothing and closed with a question."""
    INCOMPLETE = "incomplete"
    """A limit ended it, it gave up after unusable answers or calls, or something of its work was not delivered."""
    FAILED = "failed"
    CANCELED = "canceled"


GAVE_UP = frozenset(
    {
        ExitStatus.MAX_ITERATIONS,
        ExitStatus.COST_LIMIT,
        ExitStatus.TIME_LIMIT,
        ExitStatus.TOKEN_LIMIT,
        ExitStatus.NO_PROGRESS,
        ExitStatus.PLAN_UNANSWERED,
        ExitStatus.HALTED,
        ExitStatus.FORMAT_ERRORS,
    }
)
"""Ends of work that was begun and is not finished."""

GREEN = frozenset({OrderOutcome.DONE, OrderOutcome.UNCHANGED})
"""The outcomes for which a command that follows an order ends with 0."""


_WORST_LAST = (
    OrderOutcome.UNCHANGED,
    OrderOutcome.DONE,
    OrderOutcome.ASKS,
    OrderOutcome.INCOMPLETE,
    OrderOutcome.CANCELED,
    OrderOutcome.FAILED,
)


def outcome_together(outcomes: Collection[OrderOutcome | None]) -> OrderOutcome | None:
    """What came of orders that belong together: the worst of their outcomes; None until all of them have ended."""
    ended = [each for each in outcomes if each is not None]
    return max(ended, key=_WORST_LAST.index) if ended and len(ended) == len(outcomes) else None


@dataclass(frozen=True)
class EndedWork:
    """What an order delivered."""

    is_changed: bool
    """There is a change; services of the fleet always count as that."""
    asks: bool
    """Without a change, it closed with a question."""
    is_left_behind: bool
    """Something of it could not be delivered."""


def order_outcome(status: OrderStatus, exit_status: str | None, work: EndedWork) -> OrderOutcome | None:
    """What came of an order with this status; None until it has ended."""
    if status not in ENDED:
        return None
    if status is OrderStatus.CANCELED:
        return OrderOutcome.CANCELED
    if exit_status in GAVE_UP or (status is OrderStatus.SUCCEEDED and work.is_left_behind):
        return OrderOutcome.INCOMPLETE
    if status is OrderStatus.FAILED:
        return OrderOutcome.FAILED
    if work.asks:
        return OrderOutcome.ASKS
    return OrderOutcome.DONE if work.is_changed else OrderOutcome.UNCHANGED


class Verification(StrEnum):
    """The result of the project's verification commands, separate from how the run ended."""

    VERIFIED = "verified"
    FAILED = "failed"
    NOTHING_TO_VERIFY = "nothing_to_verify"
    """The project has no such commands."""
    NOT_REACHED = "not_reached"
    """The run ended before the verification."""


@dataclass(frozen=True)
class Outcome:
    """The loop's result: how it ended, why in one sentence, and the final text (submission or last answer)."""

    exit_status: ExitStatus
    reason: str
    response: str = ""

    @property
    def succeeded(self) -> bool:
        return self.exit_status in SUCCESSFUL
