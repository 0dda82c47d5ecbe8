"""The loop adds little to a call of litellm, and a step does not grow with the run as it does on the default path."""

from __future__ import annotations

import sys

import pytest

from tests.bench.loop_cost import HEADER, Row, measure

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("warm_model")]


def test_a_step_costs_little_more_than_the_bare_call_and_less_than_the_default_path(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = measure(100, calls=8)
    _show(capsys, row)
    assert row.ratio < 2.0
    assert row.step_ms < row.sdk_ms


@pytest.mark.long
@pytest.mark.parametrize("history", [10, 400])
def test_the_ratio_holds_for_short_and_for_long_runs(history: int, capsys: pytest.CaptureFixture[str]) -> None:
    row = measure(history, calls=20)
    _show(capsys, row)
    assert row.ratio < 2.0


def _show(capsys: pytest.CaptureFixture[str], row: Row) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{HEADER}\n{row}\n")
