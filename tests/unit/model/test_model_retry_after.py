"""What a server's headers say about when to come back."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import httpx

from drone.model.retry_after import asked_for

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def _failed(**headers: str) -> Exception:
    error = Exception("slow down")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    error.response = SimpleNamespace(headers=httpx.Headers(named))  # type: ignore[attr-defined]
    return error


def test_seconds_milliseconds_and_dates_are_understood() -> None:
    cases: list[tuple[dict[str, str], float | None]] = [
        ({"retry_after": "20"}, 20),
        ({"Retry_After": "1.5"}, 1.5),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after": "Sat, 21 Nov 2026 12:00:45 GMT"}, 45),
        ({"retry_after": "Sat, 21 Nov 2026 12:00:45"}, 45),
        ({"retry_after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry_after": "-5"}, 0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": ""}, None),
        ({"llm_provider_retry_after": "7"}, None),
        ({}, None),
    ]
    wrong = [(headers, got) for headers, seconds in cases if (got := asked_for(_failed(**headers), NOW)) != seconds]
    assert wrong == []


def test_headers_are_found_where_litellm_keeps_them() -> None:
    error = Exception("slow down")
    error.litellm_response_headers = {"llm_provider-retry-after": "7"}  # type: ignore[attr-defined]
    assert asked_for(error, NOW) == 7
    assert asked_for(Exception("gone"), NOW) is None
