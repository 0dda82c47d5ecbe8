"""The loop adds little to a call of litellm, and what it adds does not grow with the run."""

from __future__ import annotations

import sys

import pytest

from tests.bench.loop_cost import HEADER, Row, measure

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("warm_model")]

NOISE = 0.04
"""What a call takes is measured no better than to such a part of it, and so is the difference of two."""


def test_a_step_costs_little_more_than_the_bare_call_and_less_than_the_default_path(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = _shown(capsys, 100, calls=8)[0]
    assert row.ratio < 2.0
    assert row.step_ms < row.sdk_ms


def test_a_step_less_its_call_costs_no_more_after_400_steps_than_after_10(capsys: pytest.CaptureFixture[str]) -> None:
    short, long = _shown(capsys, 10, 400, calls=20)
    assert long.ours_ms <= 1.3 * max(short.ours_ms, NOISE * short.bare_ms) + NOISE * long.bare_ms


def test_a_call_of_an_endpoint_with_an_address_does_not_take_the_path_that_grows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    short, long = _shown(capsys, 10, 400, calls=8)
    assert long.step_ms < long.sdk_ms / 2
    assert long.step_ms - short.step_ms < (long.sdk_ms - short.sdk_ms) / 2


def _shown(capsys: pytest.CaptureFixture[str], *histories: int, calls: int) -> list[Row]:
    rows = measure(histories, calls)
    with capsys.disabled():
        sys.stdout.write("\n".join(["", HEADER, *map(str, rows), ""]))
    return rows
