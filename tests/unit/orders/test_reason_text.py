"""The sentences about orders. Behaviour is tested by the facts behind them; their wording is tested here alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shared.reason_text import reason_text
from shared.reasons import (
    AfterOrder,
    Answered,
    AnswerOnItsWay,
    AskedAgain,
    AttemptFailed,
    CancelAsked,
    CanceledEnd,
    CannotBeSent,
    DroneLabels,
    DroneState,
    EarlierOrder,
    ForPerson,
    ForPool,
    GivenBack,
    InQueue,
    JustSubmitted,
    NamedDroneRemoved,
    NoDrone,
    NoDroneFits,
    NoDroneTakesWork,
    OrderFacts,
    PausesAfterFailure,
    Placed,
    RaceBase,
    Resumption,
    Returned,
    RunEnd,
    RunLoss,
    TakenBack,
    Waits,
    WithdrawnBeforeStart,
)
from shared.states import OrderStatus

NOON = datetime(2026, 11, 20, 12, 3, 7, tzinfo=UTC)
OFFLINE = DroneState(drone="oka", code="offline", since=NOON)
BUSY = DroneState(drone="mila", code="busy", running=2, slots=2)
SILENT = RunLoss(code="drone_silent", drone="oka", since=NOON, today=False)
KIM = CancelAsked(by="kim", text="not needed")


@pytest.mark.parametrize(
    ("waits", "text"),
    [
        (JustSubmitted(), "just submitted; about to be assigned to a drone"),
        (EarlierOrder(order="o1"), "waiting for order o1 of the same session"),
        (AfterOrder(order="o1", status="open", waiting="o2"), "waiting for order o1 to succeed"),
        (
            AfterOrder(order="o1", status="canceled", waiting="o2"),
            "waiting for order o1 to succeed, but it was canceled "
            "(next: fleet retry o1, fleet resume o1, or fleet cancel o2)",
        ),
        (
            RaceBase(order="o1"),
            "waiting until order o1 has found the commit that all orders of the race start from",
        ),
        (NoDrone(), "no drone is registered yet (next: fleet token add, then drone register on a workstation)"),
        (
            NoDroneFits(labels=("gpu=yes", "os=linux"), fleet=(DroneLabels(drone="oka"), DroneLabels(drone="b"))),
            "no drone has label gpu=yes and os=linux; labels by drone: oka: none; b: none",
        ),
        (
            NoDroneTakesWork(states=(OFFLINE, BUSY)),
            "no matching drone accepts work: oka has been offline since 12:03 UTC; mila is busy: 2 of 2 slots in use",
        ),
        (
            ForPool(pool="burst", drones=0, at_most=20),
            "waits for a drone of the pool burst (0 of at most 20 are there)",
        ),
        (
            ForPool(pool="burst", drones=1, at_most=1),
            "waits for a drone of the pool burst (1 of at most 1 is there)",
        ),
        (
            NamedDroneRemoved(drone="oka", order="o1"),
            "the requested drone oka was removed (next: fleet cancel o1)",
        ),
        (
            PausesAfterFailure(until=NOON, attempt=1, attempts=3, detail="no disk"),
            "attempt 1 of 3 failed: no disk; retrying at 12:03:07 UTC",
        ),
    ],
)
def test_a_queued_order_says_what_it_waits_for(waits: Waits, text: str) -> None:
    assert reason_text(OrderStatus.QUEUED, OrderFacts(waits=waits)) == text


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (TakenBack(state=OFFLINE), "removed from oka's queue: the drone has been offline since 12:03 UTC"),
        (
            WithdrawnBeforeStart(resumes=Resumption(step=4)),
            "the run was withdrawn before it started; resumes from step 4",
        ),
        (
            GivenBack(drone="oka", detail="the drone is stopping", resumes=Resumption(step=4, drone="oka")),
            "returned by oka: the drone is stopping; resumes from step 4 on oka, "
            "or from the beginning on another drone",
        ),
        (
            AttemptFailed(detail="no disk", attempt=1, attempts=3, resumes=Resumption(why_not="expired")),
            "attempt 1 of 3 failed: no disk; queued again; "
            "starts over: its checkpoints were not stored or were deleted",
        ),
        (
            AttemptFailed(loss=SILENT, attempt=1, attempts=3, resumes=Resumption(step=9, drone="oka", elsewhere=2)),
            "attempt 1 of 3 failed: drone oka has not reported since 2026-11-20 12:03 UTC; queued again; "
            "resumes from step 9 on oka, or from step 2 on another drone",
        ),
        (AskedAgain(by="kim", from_start=True), "requested again by kim; starts from the beginning"),
        (
            AskedAgain(by="", resumes=Resumption(drone="oka", why_not="drone_cannot")),
            "requested again by a user; starts over: drone oka cannot resume from checkpoints",
        ),
    ],
)
def test_a_queued_order_says_why_it_came_back(returned: Returned, text: str) -> None:
    assert reason_text(OrderStatus.QUEUED, OrderFacts(returned=returned)) == text


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (OrderFacts(placed=Placed(code="named", drone="oka")), "assigned to oka (requested by name)"),
        (
            OrderFacts(placed=Placed(code="only_drone", drone="oka", labels=("gpu=yes",)), waits=InQueue(state=BUSY)),
            "assigned to oka (has gpu=yes, the only matching drone that accepts work); "
            "waiting in mila's queue: the drone is busy: 2 of 2 slots in use",
        ),
        (
            OrderFacts(
                returned=TakenBack(state=DroneState(drone="b", code="leaving")),
                placed=Placed(code="free_slot", drone="oka", resumes=Resumption(step=3)),
            ),
            "removed from b's queue: the drone stops after its current run; assigned to oka (has a free slot); "
            "resumes from step 3",
        ),
        (
            OrderFacts(placed=Placed(code="named", drone="oka"), waits=CannotBeSent(detail="no key")),
            "cannot be sent to the drone: no key",
        ),
        (OrderFacts(), ""),
    ],
)
def test_an_assigned_order_says_why_it_is_there_and_what_it_waits_for(facts: OrderFacts, text: str) -> None:
    assert reason_text(OrderStatus.ASSIGNED, facts) == text


@pytest.mark.parametrize(
    ("waits", "text"),
    [
        (
            ForPerson(order="o1", tool="shell", why="It deletes x."),
            "waiting for approval of shell: It deletes x. (next: fleet approve o1, or fleet deny o1)",
        ),
        (
            AnswerOnItsWay(by="", approved=False, tool="shell"),
            "a user denied the shell call; waiting for the drone to confirm",
        ),
        (Answered(by="person", approved=True), "continuing: a user approved the pending call"),
        (Answered(by="clock"), "continuing: the call was not approved in time and was denied automatically"),
        (Answered(by="interruption"), "continuing: the pending call was interrupted"),
    ],
)
def test_a_run_says_what_it_asked_a_person_and_what_was_answered(waits: Waits, text: str) -> None:
    facts = OrderFacts(placed=Placed(code="named", drone="oka"), waits=waits)
    assert reason_text(OrderStatus.RUNNING, facts) == text


def test_an_order_that_is_being_canceled_says_who_asked_for_that() -> None:
    text = "cancel requested by kim: not needed; waiting for the drone to confirm"
    assert reason_text(OrderStatus.CANCELING, OrderFacts(cancel=KIM)) == text


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (CanceledEnd(code="before_start"), "canceled by kim: not needed; it had not started"),
        (CanceledEnd(code="with_receipt"), "canceled by kim: not needed"),
        (CanceledEnd(code="with_loss", detail="the boot died"), "canceled by kim: not needed; the boot died"),
        (
            CanceledEnd(code="with_loss", loss=RunLoss(code="drone_removed", drone="oka")),
            "canceled by kim: not needed; drone oka was removed",
        ),
        (
            CanceledEnd(code="after_end", detail="done"),
            "canceled by kim: not needed; it had already ended: done",
        ),
    ],
)
def test_a_canceled_order_says_who_asked_and_how_it_ended(ended: CanceledEnd, text: str) -> None:
    assert reason_text(OrderStatus.CANCELED, OrderFacts(cancel=KIM, ended=ended)) == text


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (RunEnd(detail="The model stopped."), "The model stopped."),
        (
            RunEnd(loss=RunLoss(code="run_missing", drone="oka"), attempts=3),
            "lost: drone oka is online but no longer has the run; last of 3 attempts",
        ),
        (
            RunEnd(detail="Done.", unheard=2, session="s1"),
            "Done; 2 steering messages arrived too late (next: fleet submit … --session s1)",
        ),
    ],
)
def test_an_ended_order_says_how_its_last_run_ended(ended: RunEnd, text: str) -> None:
    assert reason_text(OrderStatus.FAILED, OrderFacts(ended=ended)) == text
