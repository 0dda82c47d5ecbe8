"""Durations as people say them."""

from __future__ import annotations

import pytest

from shared.durations import duration_label, parse_duration
from shared.errors import Invalid


def test_a_duration_is_said_in_the_units_that_fit_it() -> None:
    cases: dict[int, str] = {
        0: "0 ms",
        999: "999 ms",
        1000: "1.0 s",
        59_940: "59.9 s",
        59_960: "1 min 0 s",
        245_400: "4 min 5 s",
        3_599_600: "1 h 0 min",
        7_380_000: "2 h 3 min",
    }
    assert {milliseconds: duration_label(milliseconds) for milliseconds in cases} == cases


def test_a_typed_duration_is_read_in_its_unit() -> None:
    cases: dict[str, int] = {
        "90s": 90,
        "30m": 1800,
        " 1h ": 3600,
        "7d": 604_800,
    }
    assert {text: parse_duration(text) for text in cases} == cases


def test_anything_else_is_no_duration_and_the_refusal_shows_one() -> None:
    for text in ("", "0", "0s", "-1s", "1", "1 h", "1w", "1.5h", "1h30m", "9999999s"):
        with pytest.raises(Invalid) as refusal:
            parse_duration(text, "--idle 5m")
        assert (refusal.value.code, refusal.value.next) == ("E-DURATION", "--idle 5m"), text
