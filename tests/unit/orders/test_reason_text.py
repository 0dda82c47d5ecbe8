"""The sentences about orders. Behaviour is tested by the facts behind them; their wording is tested here alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shared.reason_text import reason_text
from shared.reasons import (
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
        (JustSubmitted(), "was just submitted and is about to be placed"),
        (EarlierOrder(order="o1"), "waits for order o1 of the same session"),
        (NoDrone(), "no drone is registered yet (next: fleet token create, then drone register on a workstation)"),
        (
            NoDroneFits(labels=("gpu=yes", "os=linux"), fleet=(DroneLabels(drone="oka"), DroneLabels(drone="b"))),
            "no drone has label gpu=yes and os=linux; labels are oka: none; b: none",
        ),
        (
            NoDroneTakesWork(states=(OFFLINE, BUSY)),
            "no drone that fits takes work now: oka is offline since 12:03 UTC; mila is busy: 2 of 2 slots in use",
        ),
        (
            NamedDroneRemoved(drone="oka", order="o1"),
            "drone oka, which was asked for by name, was removed (next: fleet cancel o1)",
        ),
        (
            PausesAfterFailure(until=NOON, attempt=1, attempts=3, detail="no disk"),
            "tried again at 12:03:07 UTC (attempt 1 of 3: no disk)",
        ),
    ],
)
def test_a_queued_order_says_what_it_waits_for(waits: Waits, text: str) -> None:
    assert reason_text(OrderStatus.QUEUED, OrderFacts(waits=waits)) == text


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (TakenBack(state=OFFLINE), "taken back from oka: the drone is offline since 12:03 UTC"),
        (
            WithdrawnBeforeStart(resumes=Resumption(step=4)),
            "the run was withdrawn before it began; goes on from step 4",
        ),
        (
            GivenBack(drone="oka", detail="it stops", resumes=Resumption(step=4, drone="oka")),
            "given back by oka: it stops; goes on from step 4 on oka, elsewhere anew",
        ),
        (
            AttemptFailed(detail="no disk", attempt=1, attempts=3, resumes=Resumption(why_not="expired")),
            "no disk; queued again (attempt 1 of 3 ended so); "
            "begins anew: its checkpoints are not stored, or not any more",
        ),
        (
            AttemptFailed(loss=SILENT, attempt=1, attempts=3, resumes=Resumption(step=9, drone="oka", elsewhere=2)),
            "lost: nothing was heard of drone oka since 2026-11-20 12:03 UTC; queued again (attempt 1 of 3 ended so); "
            "goes on from step 9 on oka, elsewhere from step 2",
        ),
        (AskedAgain(by="kim", from_start=True), "kim asked for it again, from the beginning"),
        (
            AskedAgain(by="", resumes=Resumption(drone="oka", why_not="drone_cannot")),
            "a person asked for it again; begins anew: drone oka cannot go on from checkpoints",
        ),
    ],
)
def test_a_queued_order_says_why_it_came_back(returned: Returned, text: str) -> None:
    assert reason_text(OrderStatus.QUEUED, OrderFacts(returned=returned)) == text


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (OrderFacts(placed=Placed(code="named", drone="oka")), "placed on oka: asked for by name"),
        (
            OrderFacts(placed=Placed(code="only_drone", drone="oka", labels=("gpu=yes",)), waits=InQueue(state=BUSY)),
            "placed on oka: has gpu=yes, the only drone that fits and takes work; "
            "waits in mila's queue: the drone is busy: 2 of 2 slots in use",
        ),
        (
            OrderFacts(
                returned=TakenBack(state=DroneState(drone="b", code="leaving")),
                placed=Placed(code="free_slot", drone="oka", resumes=Resumption(step=3)),
            ),
            "taken back from b: the drone stops when its run has ended; placed on oka: it has a free slot; "
            "goes on from step 3",
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
            "waits for a person: may shell be run? It deletes x. (next: fleet approve o1, or fleet deny o1)",
        ),
        (
            AnswerOnItsWay(by="", approved=False, tool="shell"),
            "a person denied the call of shell; its drone is being told",
        ),
        (Answered(by="person", approved=True), "goes on: a person approved the call that waited"),
        (Answered(by="clock"), "goes on: nobody approved the call in time, so it was denied"),
        (Answered(by="interruption"), "goes on: the call that waited was broken off"),
    ],
)
def test_a_run_says_what_it_asked_a_person_and_what_was_answered(waits: Waits, text: str) -> None:
    facts = OrderFacts(placed=Placed(code="named", drone="oka"), waits=waits)
    assert reason_text(OrderStatus.RUNNING, facts) == text


def test_an_order_that_is_being_canceled_says_who_asked_for_that() -> None:
    text = "cancel asked for by kim: not needed; waits for the drone's receipt"
    assert reason_text(OrderStatus.CANCELING, OrderFacts(cancel=KIM)) == text


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (CanceledEnd(code="before_start"), "canceled by kim: not needed, before it began"),
        (CanceledEnd(code="with_receipt"), "canceled by kim: not needed"),
        (CanceledEnd(code="with_loss", detail="the boot died"), "canceled by kim: not needed; the boot died"),
        (
            CanceledEnd(code="with_loss", loss=RunLoss(code="drone_removed", drone="oka")),
            "canceled by kim: not needed; drone oka was removed",
        ),
        (
            CanceledEnd(code="after_end", detail="done"),
            "canceled by kim: not needed; it had just ended by itself: done",
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
            "lost: drone oka beats, but no longer has the run; that was the last of 3 attempts",
        ),
        (
            RunEnd(detail="Done.", unheard=2, session="s1"),
            "Done; 2 things that people said came too late for it (next: fleet submit … --session s1)",
        ),
    ],
)
def test_an_ended_order_says_how_its_last_run_ended(ended: RunEnd, text: str) -> None:
    assert reason_text(OrderStatus.FAILED, OrderFacts(ended=ended)) == text
