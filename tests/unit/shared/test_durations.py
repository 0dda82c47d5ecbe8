"""Durations as people say them."""

from __future__ import annotations

import pytest

from shared.durations import duration_label


@pytest.mark.parametrize(
    ("milliseconds", "label"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_940, "59.9 s"),
        (59_960, "1 min 0 s"),
        (245_400, "4 min 5 s"),
        (3_599_600, "1 h 0 min"),
        (7_380_000, "2 h 3 min"),
    ],
)
def test_a_duration_is_said_in_the_units_that_fit_it(milliseconds: int, label: str) -> None:
    assert duration_label(milliseconds) == label
