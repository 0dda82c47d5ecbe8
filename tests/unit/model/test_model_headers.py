"""What the headers of answers say: limits, when to come back, and values that cannot be true."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import httpx

from drone.model.rate_headers import rates_in
from drone.model.retry_after import asked_for
from shared.rates import Rate

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def test_headers_of_openai_name_requests_and_tokens_and_those_of_anthropic_input_and_output_tokens_too() -> None:
    openai = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "29976",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert rates_in(openai, NOW) == (
        Rate(kind="requests", limit=500, remaining=499, reset_s=0.12),
        Rate(kind="tokens", limit=30_000, remaining=29_976, reset_s=360),
    )
    anthropic = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-11-25T12:00:30Z",
        "anthropic-ratelimit-input-tokens-limit": "40000",
        "anthropic-ratelimit-output-tokens-limit": "8000",
        # litellm copies the requests to OpenAI's names.
        "x-ratelimit-limit-requests": "50",
    }
    assert rates_in(anthropic, NOW) == (
        Rate(kind="requests", limit=50, remaining=49, reset_s=30),
        Rate(kind="input_tokens", limit=40_000),
        Rate(kind="output_tokens", limit=8000),
    )


def test_an_amount_that_cannot_be_true_is_ignored() -> None:
    assert rates_in({}, NOW) == rates_in({"date": "today", "x-ratelimit-remaining-requests": "5"}, NOW) == ()
    wrong = ["-1", "1e300", "inf", "nan", "many", "", "60, 100", None, b"60", ["60"]]
    for value in [*wrong, "0"]:
        assert rates_in({"x-ratelimit-limit-requests": value, "x-ratelimit-remaining-requests": "5"}, NOW) == ()
    for value in wrong:
        headers = {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": value}
        assert rates_in(headers, NOW) == (Rate(kind="requests", limit=60),)


def test_the_time_of_a_reset_is_read_in_every_form_and_nonsense_is_ignored() -> None:
    cases: list[tuple[object, float | None]] = [
        ("20ms", 0.02),
        ("1m30.5s", 90.5),
        ("1h2m3s", 3723.0),
        ("59", 59.0),
        ("2026-11-25T11:00:00Z", 0.0),
        ("2026-11-25T12:00:10", 10.0),
        ("-3s", None),
        ("9" * 400 + "s", None),
        ("9999-12-31T23:59:59Z", None),
        ("", None),
        (None, None),
    ]
    for value, seconds in cases:
        headers = {"x-ratelimit-limit-requests": "60", "x-ratelimit-reset-requests": value}
        assert rates_in(headers, NOW) == (Rate(kind="requests", limit=60, reset_s=seconds),), value


SATURDAY = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def _failed(**headers: str) -> Exception:
    error = Exception("slow down")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    error.response = SimpleNamespace(headers=httpx.Headers(named))  # type: ignore[attr-defined]
    return error


def test_seconds_milliseconds_and_dates_are_understood() -> None:
    cases: list[tuple[dict[str, str], float | None]] = [
        ({"retry_after": "20"}, 20),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after": "Sat, 21 Nov 2026 12:00:45 GMT"}, 45),
        ({"retry_after": "Sat, 21 Nov 2026 12:00:45"}, 45),
        ({"retry_after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry_after": "-5"}, 0),
        ({"retry_after": "inf"}, None),
        ({"retry_after": ""}, None),
        ({"llm_provider_retry_after": "7"}, None),
        ({}, None),
    ]
    for headers, seconds in cases:
        assert asked_for(_failed(**headers), SATURDAY) == seconds, headers
    error = Exception("slow down")
    error.litellm_response_headers = {"llm_provider-retry-after": "7"}  # type: ignore[attr-defined]
    assert asked_for(error, SATURDAY) == 7
    assert asked_for(Exception("gone"), SATURDAY) is None
