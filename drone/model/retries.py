"""Whether a failed model call is retried, and after how long."""

from __future__ import annotations

from drone.model.errors import ErrorClass, Failure
from shared.backoff import delay
from shared.work_order import Limits


def may_pass(failure: Failure, attempt: int, limits: Limits) -> bool:
    """Whether to retry after failed attempt number `attempt` (1-based)."""
    # A transcript that is too long stays too long: the loop compacts it and retries.
    passing = failure.retried and failure.error_class is not ErrorClass.CONTEXT_OVERFLOW
    return limits.retry_enabled and passing and attempt <= limits.max_retries


def retry_delay(failure: Failure, attempt: int, limits: Limits) -> float:
    """Seconds to wait after failed attempt number `attempt` (1-based); the provider's requested delay is a minimum."""
    return delay(attempt, base=limits.base_delay, retry_after=failure.retry_after)
