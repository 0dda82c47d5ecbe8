"""Rounds of the background loops, by a clock that the test sets."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from control_plane.core.background.loops import Loops
from control_plane.core.rows import each_alone
from shared.errors import FleetFault, Unreachable


@pytest.fixture
def loops() -> Loops:
    return Loops()


def test_a_round_runs_what_is_due_and_what_that_wakes_and_nothing_else(loops: Loops) -> None:
    ran: list[str] = []
    sending = loops.add("sending", lambda: ran.append("sending"), every=None)

    def look() -> None:
        ran.append("looking")
        sending.wake.set()

    loops.add("looking", look, every=10.0)
    loops.round(0.0)
    assert ran == ["sending", "looking", "sending"]
    loops.round(9.9)
    assert ran[3:] == []
    loops.round(10.0)
    assert ran[3:] == ["looking", "sending"]


def test_a_loop_that_failed_pauses_however_often_it_is_woken_and_keeps_its_error(loops: Loops) -> None:
    broken = [True]

    def body() -> None:
        if broken:
            raise ValueError(len(ran))
        ran.append("")

    ran: list[str] = []
    loop = loops.add("broken", body, every=0.0)
    loops.round(0.0)
    loop.wake.set()
    loops.round(0.0)
    assert (loop.failures, list(loops.errors)) == (1, ["broken"])
    broken.clear()
    loops.round(20.0)
    assert (ran, loop.failures, loops.errors) == ([""], 0, {})


# --- rows of a loop, each by itself


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
