"""How a run ended, as its boundary judges it: the class of an error decides what happens to the order."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Literal

from drone.installation.disk import FULL, fault_of
from drone.runs.stop_requests import Wish
from shared.errors import FleetError, FleetFault, OrderError, Refused, UnsuitableDrone
from shared.events import ErrorStep
from shared.outcome import ExitStatus, Outcome
from shared.redaction import shortened


@dataclass(frozen=True)
class RunConclusion:
    """How a run ended, without its figures.

    `give_back` returns the order to the queue any number of times; a failure that is not the order's fault is also
    retried, but counted.
    """

    status: Literal["success", "failed", "preempted"]
    exit_status: ExitStatus
    reason: str
    response: str = ""
    give_back: bool = False
    order_at_fault: bool = True
    unsuitable: bool = False
    """Only on this drone."""
    suspended: bool = False
    """The order still waits for a person, and continues once it is answered."""


def of_outcome(outcome: Outcome) -> RunConclusion:
    """The loop ended normally: a success, or a limit that fails the order but keeps its work."""
    status: Literal["success", "failed"] = "success" if outcome.succeeded else "failed"
    return RunConclusion(status, outcome.exit_status, outcome.reason, outcome.response)


SUSPENDED = RunConclusion(
    "preempted",
    ExitStatus.CANCELED,
    "suspended while it waits for a user, so that its slot is free for other orders",
    give_back=True,
    order_at_fault=False,
    suspended=True,
)


def of_wish(wish: Wish, response: str = "") -> RunConclusion:
    """The run was asked to end; a request by an operator, or a limit that it reached, also ends the order."""
    match wish.kind:
        case "terminate":
            return RunConclusion("failed", ExitStatus.CANCELED, wish.reason, response)
        case "overgrown":
            return RunConclusion("failed", ExitStatus.HALTED, wish.reason, response)
        case "stalled":
            return RunConclusion("failed", ExitStatus.NO_PROGRESS, wish.reason, response)
        case "stale":
            return RunConclusion("preempted", ExitStatus.LOST, wish.reason, response, order_at_fault=False)
        case _:
            back = wish.kind == "stop"
            return RunConclusion(
                "preempted", ExitStatus.CANCELED, wish.reason, response, give_back=back, order_at_fault=False
            )


def of_error(error: Exception) -> RunConclusion:
    """An error occurred. An order at fault fails; if the fleet is at fault, or this drone refuses, it may run again.

    A bug fails the order: another run would most likely hit it again.
    """
    error = _known(error)
    reason = sentence(error)
    match error:
        case UnsuitableDrone():
            return RunConclusion("failed", ExitStatus.REFUSED, _with_advice(error), unsuitable=True)
        case OrderError():
            return RunConclusion("failed", ExitStatus.REFUSED, _with_advice(error))
        case Refused():
            return RunConclusion("failed", ExitStatus.REFUSED, reason, order_at_fault=False)
        case FleetFault():
            return RunConclusion("failed", ExitStatus.LOST, reason, order_at_fault=False)
        case _:
            return RunConclusion("failed", ExitStatus.LOST, reason)


def step_of(error: Exception) -> ErrorStep:
    """The error as an event: a readable sentence, and all known details."""
    error = _known(error)
    if isinstance(error, FleetError):
        return ErrorStep(what=error.what, detail=error.why, code=error.code, next=error.next)
    return ErrorStep(what=sentence(error), detail="".join(traceback.format_exception(error)), code="E-DRONE-BUG")


def _known(error: Exception) -> Exception:
    """The error, or the matching error of the fleet: a full disk is not a bug."""
    return fault_of(error) if isinstance(error, OSError) and error.errno in FULL else error


def _with_advice(error: FleetError) -> str:
    """The error as one sentence with what to do: nothing else will be tried."""
    said = sentence(error)
    return f"{said.rstrip('.')} (next: {error.next})" if error.next else said


def sentence(error: Exception) -> str:
    """The error as one readable sentence."""
    if isinstance(error, FleetError):
        return f"{error.what}: {error.why}" if error.why else error.what
    first = shortened(str(error).partition("\n")[0], 200)
    return f"Unexpected error on the drone: {type(error).__name__}{': ' if first else ''}{first}"
