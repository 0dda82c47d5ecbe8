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
from shared.errors import Conflict, FleetError, Forbidden, Invalid, NotFound, TooLarge
from shared.events import ApprovalStep, DecisionStep, ToolCallStep
from shared.names import new_id
from shared.reasons import Answered, AnswerOnItsWay, ForPerson
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

QUESTION = ApprovalStep(
    about="question", call_id="c1", tool="ask", why="Which?", choices=("PostgreSQL", "SQLite"), default="SQLite"
)


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


def test_an_order_that_asks_shows_its_question_and_how_to_answer(any_plane: Plane) -> None:
    drone = any_plane.drone()
    any_plane.collector(), any_plane.supervisor()
    until = any_plane.core.clock.now() + timedelta(hours=1)
    order = asking(any_plane, drone, QUESTION.model_copy(update={"until": until}))
    assert order.questions
    wait = any_plane.order(order.order_id).waiting_for
    assert wait is not None
    assert (wait.kind, wait.text, wait.choices, wait.default, wait.deadline, wait.call_id) == (
        "question",
        "Which?",
        ["PostgreSQL", "SQLite"],
        "SQLite",
        until,
        "c1",
    )
    assert any_plane.facts(order.order_id).waits == ForPerson(
        about="question", order=order.order_id, tool="ask", why="Which?"
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [("2", "SQLite"), (" postgresql ", "PostgreSQL"), ("MySQL, as before", "MySQL, as before"), ("²", "²")],
)
def test_an_answer_is_a_choice_its_number_or_any_text(plane: Plane, oka: DroneStandIn, text: str, meant: str) -> None:
    order = asking(plane, oka)
    assert answered(plane, order, text).status == "awaiting_approval"
    assert plane.facts(order.order_id).waits == AnswerOnItsWay(about="question", by="system", approved=True, tool="ask")
    plane.until(lambda: told(oka) == [("c1", meant, "system")])
    oka.report(order, DecisionStep(about="question", call_id="c1", approved=True, answer=meant, who="system"))
    plane.until(lambda: plane.status(order.order_id) == "running")
    assert plane.facts(order.order_id).waits == Answered(about="question", by="person", approved=True)
    (wait,) = plane.rows(Wait)
    assert (wait.answer, wait.answered_by, wait.decided_by) == (meant, "system", "person")


def test_without_choices_a_number_is_an_answer_like_any_other(plane: Plane, oka: DroneStandIn) -> None:
    order = asking(plane, oka, QUESTION.model_copy(update={"choices": (), "default": None}))
    answered(plane, order, "17")
    plane.until(lambda: told(oka) == [("c1", "17", "system")])


@pytest.mark.parametrize(
    ("text", "code"),
    [("3", "E-ANSWER-CHOICE"), ("0", "E-ANSWER-CHOICE"), ("  ", "E-EMPTY"), ("x" * 10_001, "E-TOO-LONG")],
)
def test_an_answer_that_cannot_be_meant_is_refused(plane: Plane, oka: DroneStandIn, text: str, code: str) -> None:
    order = asking(plane, oka)
    with pytest.raises((Invalid, TooLarge)) as refused:
        answered(plane, order, text)
    assert refused.value.code == code
    assert told(oka) == []


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


@pytest.mark.parametrize(
    ("default", "says"), [("SQLite", "its default counts: 'SQLite'"), (None, "closed without an answer")]
)
def test_after_the_deadline_an_answer_comes_too_late(
    plane: Plane, oka: DroneStandIn, default: str | None, says: str
) -> None:
    order = asking(plane, oka, QUESTION.model_copy(update={"default": default}))
    oka.report(
        order,
        DecisionStep(about="question", call_id="c1", approved=default is not None, by="clock", answer=default or ""),
    )
    plane.until(lambda: plane.status(order.order_id) == "running")
    assert plane.facts(order.order_id).waits == Answered(about="question", by="clock", approved=default is not None)
    with pytest.raises(Conflict, match=says):
        answered(plane, order, "1")


def test_a_question_cannot_be_approved_or_denied(plane: Plane, oka: DroneStandIn) -> None:
    order = asking(plane, oka)
    for decide, request in ((steering.approve, ApproveRequest()), (steering.deny, DenyRequest())):
        with pytest.raises(Conflict) as refused:
            decide(plane.core, plane.admin, order.order_id, request)  # type: ignore[operator]
        assert (refused.value.code, refused.value.next) == (
            "E-APPROVAL-QUESTION",
            f"fleet answer {order.order_id} TEXT",
        )
    answered(plane, order, "1")


def test_an_approval_cannot_be_answered(plane: Plane, oka: DroneStandIn) -> None:
    order = asking(plane, oka, ApprovalStep(call_id="c1", tool="shell", why="Deletes files: rm x"))
    for fields in ({}, {"call": "c1"}):
        with pytest.raises(Conflict) as refused:
            answered(plane, order, "yes", **fields)
        assert refused.value.code == "E-ANSWER-APPROVAL"
        assert f"fleet approve {order.order_id}" in refused.value.next
    steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest())


def test_what_is_not_asked_cannot_be_answered(plane: Plane, oka: DroneStandIn) -> None:
    order = asking(plane, oka)
    with pytest.raises(NotFound) as unknown:
        answered(plane, order, "1", call="c9")
    assert unknown.value.code == "E-ANSWER-404"
    cancel(plane.core, plane.admin, order.order_id)
    with pytest.raises(Conflict, match="closed without an answer"):
        answered(plane, order, "1")
    queued = plane.submit()
    with pytest.raises(Conflict) as nothing:
        answer_order(plane.core, plane.admin, queued, AnswerRequest(text="1"))
    assert nothing.value.code == "E-ANSWER-NONE"


@pytest.mark.parametrize(
    ("caller", "refusal"),
    [({"role": "viewer"}, Forbidden), ({"organization_id": new_id(), "organization": "other"}, NotFound)],
)
def test_viewers_and_other_organizations_may_not_answer(
    plane: Plane, oka: DroneStandIn, caller: dict[str, Any], refusal: type[FleetError]
) -> None:
    order = asking(plane, oka)
    with pytest.raises(refusal):
        answered(plane, order, "1", replace(plane.admin, **caller))
    assert plane.rows(Wait)[0].answer is None
