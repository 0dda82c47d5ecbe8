"""The sentences about orders: what each fact puts into them. Behaviour is tested by the facts themselves."""

from __future__ import annotations

from datetime import UTC, datetime

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
    RunEnd,
    RunLoss,
    TakenBack,
    WithdrawnBeforeStart,
)
from shared.states import OrderStatus

NOON = datetime(2026, 11, 20, 12, 3, 7, tzinfo=UTC)
OFFLINE = DroneState(drone="oka", code="offline", since=NOON)
BUSY = DroneState(drone="mila", code="busy", running=2, slots=2)
SILENT = RunLoss(code="drone_silent", drone="oka", since=NOON, today=False)
KIM = CancelAsked(by="kim", text="not needed")


NAMED = Placed(code="named", drone="oka")
OPEN, AGAIN = AfterOrder(order="o1", status="open", waiting="o2"), Resumption(step=9, drone="oka", elsewhere=2)
AFTER = AfterOrder(order="o1", status="canceled", waiting="o2")
NO_FIT = NoDroneFits(labels=("gpu=yes", "os=linux"), fleet=(DroneLabels(drone="oka"), DroneLabels(drone="b")))
LEFT = TakenBack(state=DroneState(drone="b", code="leaving"))
GIVEN = GivenBack(drone="oka", detail="the drone is stopping", resumes=Resumption(step=4, drone="oka"))
TOLD: dict[OrderStatus, list[tuple[OrderFacts, list[str]]]] = {
    OrderStatus.QUEUED: [
        (OrderFacts(waits=JustSubmitted()), ["just submitted"]),
        (OrderFacts(waits=EarlierOrder(order="o1")), ["waiting for order o1 of the same session"]),
        (OrderFacts(waits=OPEN), ["waiting for order o1 to succeed"]),
        (OrderFacts(waits=AFTER), ["it was canceled", "fleet retry o1, fleet resume o1, or fleet cancel o2"]),
        (OrderFacts(waits=RaceBase(order="o1")), ["order o1", "race"]),
        (OrderFacts(waits=NoDrone()), ["no drone is registered yet", "fleet token add"]),
        (OrderFacts(waits=NO_FIT), ["gpu=yes and os=linux", "oka: none; b: none"]),
        (OrderFacts(waits=NoDroneTakesWork(states=(OFFLINE, BUSY))), ["oka", "since 12:03 UTC; mila", "2 of 2 slots"]),
        (OrderFacts(waits=ForPool(pool="burst", drones=1, at_most=1)), ["the pool burst (1 of at most 1 is there)"]),
        (OrderFacts(waits=NamedDroneRemoved(drone="oka", order="o1")), ["oka was removed", "fleet cancel o1"]),
        (
            OrderFacts(waits=PausesAfterFailure(until=NOON, attempt=1, attempts=3, detail="no disk")),
            ["attempt 1 of 3 failed: no disk", "12:03:07 UTC"],
        ),
        (OrderFacts(returned=TakenBack(state=OFFLINE)), ["removed from oka's queue", "since 12:03 UTC"]),
        (OrderFacts(returned=WithdrawnBeforeStart(resumes=Resumption(step=4))), ["withdrawn", "resumes from step 4"]),
        (OrderFacts(returned=GIVEN), ["returned by oka: the drone is stopping", "from step 4 on oka", "another drone"]),
        (
            OrderFacts(returned=AttemptFailed(loss=SILENT, attempt=1, attempts=3, resumes=AGAIN)),
            ["drone oka has not reported since 2026-11-20 12:03 UTC", "from step 9 on oka, or from step 2 on another"],
        ),
        (OrderFacts(returned=AskedAgain(by="kim", from_start=True)), ["requested again by kim", "from the beginning"]),
        (
            OrderFacts(returned=AskedAgain(by="", resumes=Resumption(drone="oka", why_not="drone_cannot"))),
            ["requested again by a user; starts over", "drone oka"],
        ),
    ],
    OrderStatus.ASSIGNED: [
        (OrderFacts(placed=NAMED), ["assigned to oka (requested by name)"]),
        (
            OrderFacts(placed=Placed(code="only_drone", drone="oka", labels=("gpu=yes",)), waits=InQueue(state=BUSY)),
            ["assigned to oka (has gpu=yes", "waiting in mila's queue", "2 of 2 slots"],
        ),
        (
            OrderFacts(returned=LEFT, placed=Placed(code="free_slot", drone="oka", resumes=Resumption(step=3))),
            ["removed from b's queue", "assigned to oka (has a free slot)", "resumes from step 3"],
        ),
        (OrderFacts(placed=NAMED, waits=CannotBeSent(detail="no key")), ["cannot be sent to the drone: no key"]),
    ],
    OrderStatus.RUNNING: [
        (
            OrderFacts(placed=NAMED, waits=ForPerson(order="o1", tool="shell", why="It deletes x.")),
            ["approval of shell: It deletes x.", "fleet approve o1, or fleet deny o1"],
        ),
        (OrderFacts(waits=AnswerOnItsWay(by="", approved=False, tool="shell")), ["a user denied the shell call"]),
        (OrderFacts(waits=Answered(by="person", approved=True)), ["continuing: a user approved"]),
        (OrderFacts(waits=Answered(by="clock")), ["continuing", "denied automatically"]),
        (OrderFacts(waits=Answered(by="interruption")), ["continuing", "interrupted"]),
    ],
    OrderStatus.CANCELING: [(OrderFacts(cancel=KIM), ["cancel requested by kim: not needed"])],
    OrderStatus.CANCELED: [
        (OrderFacts(cancel=KIM, ended=CanceledEnd(code="before_start")), ["by kim: not needed", "had not started"]),
        (OrderFacts(cancel=KIM, ended=CanceledEnd(code="with_receipt")), ["canceled by kim: not needed"]),
        (OrderFacts(cancel=KIM, ended=CanceledEnd(code="with_loss", detail="the boot died")), ["the boot died"]),
        (OrderFacts(cancel=KIM, ended=CanceledEnd(code="after_end", detail="done")), ["already ended: done"]),
    ],
    OrderStatus.FAILED: [
        (OrderFacts(ended=RunEnd(detail="The model stopped.")), ["The model stopped."]),
        (
            OrderFacts(ended=RunEnd(loss=RunLoss(code="run_missing", drone="oka"), attempts=3)),
            ["lost: drone oka is online but no longer has the run", "last of 3 attempts"],
        ),
        (OrderFacts(ended=RunEnd(detail="Done.", unheard=2, session="s1")), ["Done; 2 steering", "--session s1"]),
    ],
}


def test_an_order_says_in_each_status_what_it_waits_for_or_how_it_ended() -> None:
    told = [(status, facts, words) for status, rows in TOLD.items() for facts, words in rows]
    wrong = [
        said for status, facts, words in told if not all(word in (said := reason_text(status, facts)) for word in words)
    ]
    assert wrong == []
    assert reason_text(OrderStatus.ASSIGNED, OrderFacts()) == ""
