"""Whether a model call that failed is made again, and after how long."""

from __future__ import annotations

from drone.model.errors import ErrorClass, Failure
from shared.backoff import delay
from shared.work_order import Limits


def may_pass(failure: Failure, attempt: int, limits: Limits) -> bool:
    """Whether to ask again after failed attempt number `attempt` (1-based)."""
    # A transcript that is too long stays so: the loop compacts it, and asks again.
    passing = failure.retried and failure.error_class is not ErrorClass.CONTEXT_OVERFLOW
    return limits.retry_enabled and passing and attempt <= limits.max_retries


def retry_delay(failure: Failure, attempt: int, limits: Limits) -> float:
    """Seconds to wait after failed attempt number `attempt` (1-based); what the provider asked for is a floor."""
    return delay(attempt, base=limits.base_delay, retry_after=failure.retry_after)
