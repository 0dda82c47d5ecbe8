"""The delay that a server requested: in milliseconds, in seconds, until a date, or in the text of its refusal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

_RETRY_INFO = re.compile(r'"retryDelay":\s*"(?P<seconds>\d+(?:\.\d+)?)s"')
"""Google names the delay in the details of its error (https://ai.google.dev/gemini-api/docs/generate-content/api-errors)."""


def asked_for(error: BaseException, now: datetime) -> float | None:
    """Return the seconds requested by a failed call; None if it contains no valid value."""
    headers = headers_of(error)
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    value = headers.get("retry-after")
    if value is None:
        named = _RETRY_INFO.search(str(error))
        return _number(named["seconds"]) if named else None
    seconds = _number(value)
    return _until(str(value), now) if seconds is None else seconds


def headers_of(answer: Any) -> Mapping[str, Any]:
    """The headers of a failed call or of a stream, with names in lower case.

    They are where litellm stores them; some of its providers add a prefix to the names.
    """
    found: Any = getattr(answer, "litellm_response_headers", None)
    if not found:
        found = (getattr(answer, "_hidden_params", None) or {}).get("additional_headers")
    if not found:
        found = getattr(getattr(answer, "response", None), "headers", None)
    return {str(name).lower().removeprefix("llm_provider-"): value for name, value in dict(found or {}).items()}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, number) if isfinite(number) else None


def _until(date: str, now: datetime) -> float | None:
    try:
        then = parsedate_to_datetime(date)
    except ValueError:
        return None
    aware = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
