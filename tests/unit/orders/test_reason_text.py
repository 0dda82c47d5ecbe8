"""The sentences about orders: what each fact puts into them. Behaviour is tested by the facts themselves."""

from __future__ import annotations

from datetime import UTC, datetime

from shared.reason_text import reason_text
from shared.reasons import (
    AfterOrder,
    AskedAgain,
    AttemptFailed,
    CancelAsked,
    CanceledEnd,
    DroneLabels,
    DroneState,
    ForPerson,
    GivenBack,
    InQueue,
    NoDroneFits,
    NoDroneTakesWork,
    OrderFacts,
    PausesAfterFailure,
    Placed,
    Resumption,
    RunEnd,
    RunLoss,
    TakenBack,
)
from shared.states import OrderStatus

NOON = datetime(2026, 11, 20, 12, 3, 7, tzinfo=UTC)
OFFLINE = DroneState(drone="oka", code="offline", since=NOON)
BUSY = DroneState(drone="mila", code="busy", running=2, slots=2)
SILENT = RunLoss(code="drone_silent", drone="oka", since=NOON, today=False)
KIM = CancelAsked(by="kim", text="not needed")


NAMED = Placed(code="named", drone="oka")
AGAIN = Resumption(step=9, drone="oka", elsewhere=2)
AFTER = AfterOrder(order="o1", status="canceled", waiting="o2")
NO_FIT = NoDroneFits(labels=("gpu=yes", "os=linux"), fleet=(DroneLabels(drone="oka"), DroneLabels(drone="b")))
LEFT = TakenBack(state=DroneState(drone="b", code="leaving"))
GIVEN = GivenBack(drone="oka", detail="the drone is stopping", resumes=Resumption(step=4, drone="oka"))
TOLD: dict[OrderStatus, list[tuple[OrderFacts, list[str]]]] = {
    OrderStatus.QUEUED: [
        (OrderFacts(waits=AFTER), ["it was canceled", "fleet retry o1, fleet resume o1, or fleet cancel o2"]),
        (OrderFacts(waits=NO_FIT), ["gpu=yes and os=linux", "oka: none; b: none"]),
        (OrderFacts(waits=NoDroneTakesWork(states=(OFFLINE, BUSY))), ["oka", "since 12:03 UTC; mila", "2 of 2 slots"]),
        (
            OrderFacts(waits=PausesAfterFailure(until=NOON, attempt=1, attempts=3, detail="no disk")),
            ["attempt 1 of 3 failed: no disk", "12:03:07 UTC"],
        ),
        (OrderFacts(returned=GIVEN), ["returned by oka: the drone is stopping", "from step 4 on oka", "another drone"]),
        (
            OrderFacts(returned=AttemptFailed(loss=SILENT, attempt=1, attempts=3, resumes=AGAIN)),
            ["drone oka has not reported since 2026-11-20 12:03 UTC", "from step 9 on oka, or from step 2 on another"],
        ),
        (
            OrderFacts(returned=AskedAgain(by="", resumes=Resumption(drone="oka", why_not="expired"))),
            ["requested again by a user; starts over", "not stored or were deleted"],
        ),
    ],
    OrderStatus.ASSIGNED: [
        (
            OrderFacts(placed=Placed(code="only_drone", drone="oka", labels=("gpu=yes",)), waits=InQueue(state=BUSY)),
            ["assigned to oka (has gpu=yes", "waiting in mila's queue", "2 of 2 slots"],
        ),
        (
            OrderFacts(returned=LEFT, placed=Placed(code="free_slot", drone="oka", resumes=Resumption(step=3))),
            ["removed from b's queue", "assigned to oka (has a free slot)", "resumes from step 3"],
        ),
    ],
    OrderStatus.RUNNING: [
        (
            OrderFacts(placed=NAMED, waits=ForPerson(order="o1", tool="shell", why="It deletes x.")),
            ["approval of shell: It deletes x.", "fleet approve o1, or fleet deny o1"],
        ),
    ],
    OrderStatus.CANCELING: [(OrderFacts(cancel=KIM), ["cancel requested by kim: not needed"])],
    OrderStatus.CANCELED: [
        (OrderFacts(cancel=KIM, ended=CanceledEnd(code="before_start")), ["by kim: not needed", "had not started"]),
        (OrderFacts(cancel=KIM, ended=CanceledEnd(code="after_end", detail="done")), ["already ended: done"]),
    ],
    OrderStatus.FAILED: [
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
