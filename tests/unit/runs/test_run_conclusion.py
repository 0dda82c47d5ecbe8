"""What becomes of the order is decided by the class of the error."""

from __future__ import annotations

import errno

import pytest

from drone.runs.conclusion import RunConclusion, of_error, of_outcome, of_wish, step_of
from drone.runs.stop_requests import Wish
from shared.errors import FleetFault, Forbidden, OrderError, UnsuitableDrone
from shared.outcome import ExitStatus, Outcome


def test_a_limit_fails_the_order_and_reaching_max_iterations_does_not() -> None:
    assert of_outcome(Outcome(ExitStatus.TIME_LIMIT, "time is up")).status == "failed"
    assert of_outcome(Outcome(ExitStatus.MAX_ITERATIONS, "enough answers")).status == "success"


@pytest.mark.parametrize(
    ("error", "at_fault"),
    [
        (OrderError("no such branch", code="E"), True),
        (FleetFault("the disk is full", code="E"), False),
        (Forbidden("not allowed on this drone", code="E"), False),
        (KeyError("a bug"), True),
    ],
)
def test_only_an_order_at_fault_or_a_bug_ends_the_order(error: Exception, at_fault: bool) -> None:
    conclusion = of_error(error)
    assert (conclusion.status, conclusion.order_at_fault, conclusion.give_back) == ("failed", at_fault, False)


def test_what_only_this_drone_cannot_do_says_so_and_what_to_do_in_one_sentence() -> None:
    conclusion = of_error(UnsuitableDrone("h denied access", code="E", why="fatal: no.", next="git ls-remote h"))

    assert (conclusion.status, conclusion.order_at_fault, conclusion.unsuitable) == ("failed", True, True)
    assert conclusion.reason == "h denied access: fatal: no (next: git ls-remote h)"
    assert of_error(OrderError("no such branch", code="E")).unsuitable is False


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("cancel", ("preempted", False)),
        ("stop", ("preempted", True)),
        ("terminate", ("failed", False)),
    ],
)
def test_a_stop_gives_the_order_back_and_a_cancel_does_not(kind: str, expected: tuple[str, bool]) -> None:
    conclusion: RunConclusion = of_wish(Wish(kind, "because"))  # type: ignore[arg-type]
    assert (conclusion.status, conclusion.give_back) == expected


def test_a_bug_is_told_in_a_sentence_with_its_traceback_beside_it() -> None:
    try:
        {}["missing"]
    except KeyError as error:
        step = step_of(error)
    assert step.what == "Unexpected error on the drone: KeyError: 'missing'"
    assert "Traceback" in step.detail
    assert "Traceback" not in step.what


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_the_fleets_fault_wherever_it_is_met(number: int) -> None:
    error = OSError(number, "No space left on device")
    assert of_error(error).order_at_fault is False
    assert step_of(error).code == "E-DISK-FULL"
