"""What becomes of the order is decided by the class of the error."""

from __future__ import annotations

import errno

from drone.runs.conclusion import of_error, of_outcome, of_wish, step_of
from drone.runs.stop_requests import Wish
from shared.errors import FleetFault, Forbidden, OrderError
from shared.outcome import ExitStatus, Outcome


def test_a_limit_fails_the_order_a_stop_gives_it_back_and_a_cancel_does_not() -> None:
    assert of_outcome(Outcome(ExitStatus.TIME_LIMIT, "time is up")).status == "failed"
    assert of_outcome(Outcome(ExitStatus.MAX_ITERATIONS, "enough answers")).status == "success"
    found = {kind: of_wish(Wish(kind, "because")) for kind in ("cancel", "stop", "terminate")}  # type: ignore[arg-type]
    assert {kind: (each.status, each.give_back) for kind, each in found.items()} == {
        "cancel": ("preempted", False),
        "stop": ("preempted", True),
        "terminate": ("failed", False),
    }


def test_only_an_order_at_fault_or_a_bug_ends_the_order() -> None:
    at_fault = {
        OrderError("no such branch", code="E"): True,
        FleetFault("the disk is full", code="E"): False,
        Forbidden("not allowed on this drone", code="E"): False,
        KeyError("a bug"): True,
        OSError(errno.ENOSPC, "No space left on device"): False,
        OSError(errno.EDQUOT, "Disk quota exceeded"): False,
    }
    for error, expected in at_fault.items():
        conclusion = of_error(error)
        assert (conclusion.status, conclusion.order_at_fault, conclusion.give_back) == ("failed", expected, False)
    assert step_of(OSError(errno.EDQUOT, "Disk quota exceeded")).code == "E-DISK-FULL"
