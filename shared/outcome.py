"""The end of a run: one typed status and one sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    """A guardrail ended the run; the work is kept."""
    NO_PROGRESS = "no_progress"
    """The run made no progress for longer than its limit; the work is kept."""
    PLAN_UNANSWERED = "plan_unanswered"
    """The plan was not approved in time; nothing was changed."""


SUCCESSFUL = frozenset({ExitStatus.SUBMITTED, ExitStatus.STOPPED, ExitStatus.MAX_ITERATIONS})


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
