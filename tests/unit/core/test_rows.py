"""Rows of a background loop, each by itself."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from control_plane.core.rows import each_alone
from shared.errors import FleetFault, Unreachable


def act(row: str) -> str:
    if row.startswith("bad"):
        raise ValueError(row)
    return row.upper()


def test_a_row_that_fails_is_left_out_and_logged_once() -> None:
    with capture_logs() as logged:
        done = [each_alone("test", ["a", "bad 1", "b", "bad 2", "c"], act) for _ in range(3)]
    assert done == [["A", "B", "C"]] * 3
    assert [(each["row"], each["error"]) for each in logged] == [("bad 1", "ValueError"), ("bad 2", "ValueError")]


def test_what_concerns_all_rows_ends_the_round() -> None:
    for error in (
        Unreachable("away", code="E-X"),
        FleetFault("full", code="E-X"),
        OperationalError("", None, OSError()),
    ):

        def fail(_row: str, error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)):
            each_alone("test", ["a"], fail)
