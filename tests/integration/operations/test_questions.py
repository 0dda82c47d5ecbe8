"""Questions of agents: the order waits, the first answer counts, and the drone is told it once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from control_plane.core import Caller
from control_plane.db.waits import Wait
from control_plane.documents.orders import AnswerRequest, ApproveRequest, DenyRequest, OrderSummary
from control_plane.operations.orders import steering
from control_plane.operations.orders.answering import answer_order
from control_plane.operations.orders.canceling import cancel
from shared.errors import Conflict, FleetError, Invalid, TooLarge
from shared.events import ApprovalStep, DecisionStep, ToolCallStep
from shared.reasons import Answered, AnswerOnItsWay, ForPerson
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

QUESTION = ApprovalStep(
    about="question", call_id="c1", tool="ask", why="Which?", choices=("PostgreSQL", "SQLite"), default="SQLite"
)

LONG = "x" * 10_001


def asking(plane: Plane, drone: DroneStandIn, step: ApprovalStep = QUESTION) -> WorkOrder:
    """An order whose run asks."""
    drone.renew_lease()
    plane.submit()
    order = plane.until(drone.take)
    assert drone.claim(order)
    called = ToolCallStep(call_id=step.call_id, tool=step.tool, arguments={"question": step.why})
    drone.report(order, drone.started(), called, step)
    plane.until(lambda: plane.status(order.order_id) == "awaiting_approval")
    return order


def answered(plane: Plane, order: WorkOrder, text: str, caller: Caller | None = None, **fields: Any) -> OrderSummary:
    return answer_order(plane.core, caller or plane.admin, order.order_id, AnswerRequest(text=text, **fields))


def told(drone: DroneStandIn) -> list[tuple[str, str, str]]:
    return [(body.call_id, body.answer, body.who) for message in drone.told("decide") if (body := message.body)]


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    return drone


def test_an_order_that_asks_shows_its_question_and_how_to_answer(plane: Plane, oka: DroneStandIn) -> None:
    until = plane.core.clock.now() + timedelta(hours=1)
    order = asking(plane, oka, QUESTION.model_copy(update={"until": until}))
    assert order.questions
    wait = plane.order(order.order_id).waiting_for
    assert wait is not None
    assert (wait.kind, wait.text, wait.choices, wait.default, wait.deadline, wait.call_id) == (
        "question",
        "Which?",
        ["PostgreSQL", "SQLite"],
        "SQLite",
        until,
        "c1",
    )
    assert plane.facts(order.order_id).waits == ForPerson(
        about="question", order=order.order_id, tool="ask", why="Which?"
    )


def test_the_answer_is_told_to_the_drone_and_the_order_goes_on_when_the_run_does(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = asking(plane, oka)
    for text, code in (("3", "E-ANSWER-CHOICE"), ("0", "E-ANSWER-CHOICE"), ("  ", "E-EMPTY"), (LONG, "E-TOO-LONG")):
        with pytest.raises((Invalid, TooLarge)) as refused:
            answered(plane, order, text)
        assert refused.value.code == code
    assert told(oka) == []
    assert answered(plane, order, "2").status == "awaiting_approval"
    assert plane.facts(order.order_id).waits == AnswerOnItsWay(about="question", by="system", approved=True, tool="ask")
    plane.until(lambda: told(oka) == [("c1", "SQLite", "system")])
    oka.report(order, DecisionStep(about="question", call_id="c1", approved=True, answer="SQLite", who="system"))
    plane.until(lambda: plane.status(order.order_id) == "running")
    assert plane.facts(order.order_id).waits == Answered(about="question", by="person", approved=True)
    (wait,) = plane.rows(Wait)
    assert (wait.answer, wait.answered_by, wait.decided_by) == ("SQLite", "system", "person")


def test_an_answer_is_a_choice_its_number_or_any_text(plane: Plane, oka: DroneStandIn) -> None:
    """Without choices a number is a text like any other."""
    order = asking(plane, oka)
    texts = (" postgresql ", "PostgreSQL"), ("MySQL, as before", "MySQL, as before"), ("²", "²"), ("17", "17")
    for number, (text, meant) in enumerate(texts, 2):
        call, choices = f"c{number}", () if text == "17" else QUESTION.choices
        oka.report(order, QUESTION.model_copy(update={"call_id": call, "choices": choices}))
        plane.until(lambda number=number: len(plane.rows(Wait)) == number)
        answered(plane, order, text, call=call)
        plane.until(lambda call=call, meant=meant: (call, meant, "system") in told(oka))


def test_the_first_answer_counts_and_the_second_is_told_what_it_was(plane: Plane, oka: DroneStandIn) -> None:
    order = asking(plane, oka)
    answered(plane, order, "1", replace(plane.admin, user="kim"))
    for fields in ({}, {"call": "c1"}):
        with pytest.raises(Conflict, match="already answered by kim: 'PostgreSQL'"):
            answered(plane, order, "2", **fields)
    oka.report(order, DecisionStep(about="question", call_id="c1", approved=True, answer="PostgreSQL", who="kim"))
    plane.until(lambda: plane.status(order.order_id) == "running")
    with pytest.raises(Conflict, match="already answered by kim: 'PostgreSQL'"):
        answered(plane, order, "2")
    plane.until(lambda: told(oka) == [("c1", "PostgreSQL", "kim")])


def test_after_the_deadline_an_answer_comes_too_late(plane: Plane, oka: DroneStandIn) -> None:
    order = asking(plane, oka)
    for call, default, says in (
        ("c1", "SQLite", "its default counts: 'SQLite'"),
        ("c2", "", "closed without an answer"),
    ):
        if call != "c1":
            oka.report(order, QUESTION.model_copy(update={"call_id": call, "default": None}))
            plane.until(lambda: plane.status(order.order_id) == "awaiting_approval")
        decided = DecisionStep(about="question", call_id=call, approved=bool(default), by="clock", answer=default)
        oka.report(order, decided)
        plane.until(lambda: plane.status(order.order_id) == "running")
        assert plane.facts(order.order_id).waits == Answered(about="question", by="clock", approved=bool(default))
        with pytest.raises(Conflict, match=says):
            answered(plane, order, "1")


def test_a_question_is_answered_an_approval_is_approved_and_what_is_not_asked_is_neither(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = asking(plane, oka)
    for decide, request in ((steering.approve, ApproveRequest()), (steering.deny, DenyRequest())):
        with pytest.raises(Conflict) as refused:
            decide(plane.core, plane.admin, order.order_id, request)  # type: ignore[operator]
        assert (refused.value.code, refused.value.next) == (
            "E-APPROVAL-QUESTION",
            f"fleet answer {order.order_id} TEXT",
        )
    oka.report(order, ApprovalStep(call_id="c2", tool="shell", why="Deletes files: rm x"))
    plane.until(lambda: len(plane.rows(Wait)) == 2)
    codes = []
    for call in ("c2", "c9"):
        with pytest.raises(FleetError) as wrong:
            answered(plane, order, "1", call=call)
        codes.append(wrong.value.code)
    assert codes == ["E-ANSWER-APPROVAL", "E-ANSWER-404"]
    cancel(plane.core, plane.admin, order.order_id)
    with pytest.raises(Conflict, match="closed without an answer"):
        answered(plane, order, "1")
    with pytest.raises(Conflict) as nothing:
        answer_order(plane.core, plane.admin, plane.submit(), AnswerRequest(text="1"))
    assert nothing.value.code == "E-ANSWER-NONE"
