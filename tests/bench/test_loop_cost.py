"""The loop adds little to a litellm call, and its overhead does not grow with the run."""

from __future__ import annotations

import sys

import pytest

from tests.bench.loop_cost import Row, measure

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("warm_model")]

GROWTH = 5.0
"""Maximum cost factor for forty times the history: a cost that grew with it would be forty times as high.

2.5 is usual; 3.2 was seen beside other tests.
"""


@pytest.fixture(scope="module")
def rows(warm_model: None) -> dict[int, Row]:
    """A row for each history length, measured once for all of these tests and printed."""
    measured = measure((10, 100, 400), calls=4)
    sys.stdout.write("\n".join(["", *map(str, measured), ""]))
    return {row.history: row for row in measured}


def test_a_step_costs_little_more_than_the_bare_call_and_less_than_the_default_path(rows: dict[int, Row]) -> None:
    assert rows[100].ratio < 1.5
    assert rows[100].step_ms < 5 * rows[100].own_path_ms
    assert rows[100].step_ms < rows[100].sdk_ms


def test_a_step_less_its_call_costs_no_more_after_400_steps_than_after_10(rows: dict[int, Row]) -> None:
    short, long = rows[10], rows[400]
    assert 0 < long.ours_ms <= GROWTH * short.ours_ms


def test_a_call_of_an_endpoint_with_an_address_does_not_take_the_path_that_grows(rows: dict[int, Row]) -> None:
    short, long = rows[10], rows[400]
    assert long.step_ms < long.sdk_ms / 2
    assert long.step_ms - short.step_ms < (long.sdk_ms - short.sdk_ms) / 2
