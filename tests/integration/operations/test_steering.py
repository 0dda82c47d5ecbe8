"""What people say to an order, approve, deny and answer: it reaches the run once, and the first decision counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from control_plane.contract.declarations.steering import AnswerRequest, ApproveRequest, DenyRequest, SayRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.sessions import ChatSession
from control_plane.db.waits import Wait
from control_plane.operations.orders import reading, steering
from control_plane.operations.orders.answering import answer_order, chosen
from control_plane.operations.orders.canceling import cancel
from control_plane.orders.waits import WaitAnswer, answer
from shared import names
from shared.errors import Conflict
from shared.events import (
    ApprovalStep,
    AssistantStep,
    ChildStep,
    DecisionStep,
    Receipt,
    ToolCallStep,
    Usage,
    UserStep,
)
from shared.reasons import Answered, AnswerOnItsWay, ForPerson, RunEnd
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.refusals import code_of
from tests.support.stand_in import DroneStandIn

WHY = "Publishes commits: git push"
QUESTION = ApprovalStep(
    about="question", call_id="c1", tool="ask", why="Which?", choices=("PostgreSQL", "SQLite"), default="SQLite"
)


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    """A drone of a fleet that runs."""
    drone = plane.drone()
    plane.collector(), plane.supervisor()
    return drone


def claimed(plane: Plane, drone: DroneStandIn) -> WorkOrder:
    order = plane.until(drone.take)
    drone.renew_lease()
    assert drone.claim(order)
    return order


def running(plane: Plane, worker: DroneStandIn, **fields: Any) -> WorkOrder:
    """An order that runs on the drone."""
    plane.submit(**fields)
    order = claimed(plane, worker)
    worker.report(order, worker.started())
    plane.until(lambda: plane.status(order.order_id) == "running")
    return order


def asks(plane: Plane, drone: DroneStandIn, order: WorkOrder, step: ApprovalStep = QUESTION, **called: Any) -> None:
    """The run asks, and the order waits."""
    drone.report(order, ToolCallStep(call_id=step.call_id, tool=step.tool, arguments=called), step)
    # The call itself is stored before it, perhaps alone, and the order may wait for another call already.
    plane.until(lambda: plane.rows(Wait, Wait.subject == step.call_id, Wait.run_id == order.run_id))
    plane.until(lambda: plane.status(order.order_id) == "awaiting_approval")


def wants(plane: Plane, drone: DroneStandIn, order: WorkOrder, call: str = "c1", command: str = "git push") -> None:
    """The run asks for approval of a command."""
    asks(plane, drone, order, ApprovalStep(call_id=call, tool="shell", why=WHY), command=command)


def decided(drone: DroneStandIn, order: WorkOrder, call: str = "c1", **fields: Any) -> None:
    """The run reports what was decided."""
    drone.report(order, DecisionStep.model_validate({"call_id": call, "approved": True, **fields}))


def say(plane: Plane, order_id: str, text: str, **when: bool) -> str:
    """Say something as the admin; the order's status then."""
    return steering.say(plane.core, plane.admin, order_id, SayRequest(text=text, **when)).status


def approve(plane: Plane, order: WorkOrder, **fields: Any) -> OrderSummary:
    return steering.approve(plane.core, plane.admin, order.order_id, ApproveRequest(**fields))


def deny(plane: Plane, order: WorkOrder, **fields: Any) -> OrderSummary:
    return steering.deny(plane.core, plane.admin, order.order_id, DenyRequest(**fields))


def answered(plane: Plane, order: WorkOrder, text: str, caller: Caller | None = None, **fields: Any) -> OrderSummary:
    return answer_order(plane.core, caller or plane.admin, order.order_id, AnswerRequest(text=text, **fields))


def told(drone: DroneStandIn) -> list[tuple[str, bool, str]]:
    """The decisions that the drone was told: the call, whether it is approved, and the answer or comment."""
    bodies = [message.body for message in drone.told("decide")]
    return sorted((body.call_id, body.approved, body.answer or body.comment) for body in bodies)


def heard(drone: DroneStandIn, order: WorkOrder) -> list[tuple[str, bool, bool]]:
    """What the run was told, inside its order and by the drone's inbox: text, after, interrupt; sorted by text."""
    along = [(word.text, word.after, False) for word in order.said]
    bodies = [message.body for message in drone.told("say") if message.body.run_id == order.run_id]
    return sorted([*along, *((body.text, body.after, body.interrupt) for body in bodies)])


def test_what_is_said_before_and_while_a_run_works_is_told_to_it(plane: Plane) -> None:
    order_id = plane.submit()
    assert say(plane, order_id, "1 while queued") == "queued"
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = claimed(plane, oka)
    assert say(plane, order_id, "2 while assigned", interrupt=True) == "assigned"
    assert plane.rows(InboxMessage) == []
    oka.report(order, oka.started())
    plane.reaches(order_id, "running")
    assert say(plane, order_id, "3 steer") == "running"
    say(plane, order_id, "4 after", after=True)
    say(plane, order_id, "5 now", interrupt=True)
    plane.until(lambda: len(heard(oka, order)) == 5)
    assert heard(oka, order) == [
        # Nothing had begun that the second could interrupt.
        *(("1 while queued", False, False), ("2 while assigned", False, False)),
        *(("3 steer", False, False), ("4 after", True, False), ("5 now", False, True)),
    ]


def test_a_run_that_begins_afresh_hears_also_what_a_lost_one_had_heard_or_not(plane: Plane, oka: DroneStandIn) -> None:
    lost = running(plane, oka)
    say(plane, lost.order_id, "mind the tests")
    say(plane, lost.order_id, "not taken up")
    oka.report(lost, UserStep(text="mind the tests", source="steer"))
    plane.until(lambda: [word.text for word in plane.order(lost.order_id).unheard] == ["not taken up"])
    mila = plane.drone("mila")
    oka.restart()
    oka.beat(draining=True)
    again = plane.until(lambda: mila.take() or oka.take())
    holder = mila if again.drone_id == mila.id else oka
    holder.renew_lease()
    assert holder.claim(again)
    holder.report(again, holder.started())
    words = [("mind the tests", False, False), ("not taken up", False, False)]
    plane.until(lambda: heard(holder, again) == words)
    assert again.run_id != lost.run_id


def test_the_order_shows_what_its_run_has_not_taken_up_and_its_end_tells_of_it(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    say(plane, order.order_id, "one")
    say(plane, order.order_id, "at the end", after=True)
    say(plane, order.order_id, "two")
    oka.report(order, UserStep(text="one", source="steer"), UserStep(text="a note", source="loop"))
    plane.until(lambda: [word.text for word in plane.order(order.order_id).unheard] == ["at the end", "two"])
    oka.report(order, UserStep(text="at the end", source="follow_up"), oka.ended())
    done, ended = plane.reaches(order.order_id, "succeeded"), plane.facts(order.order_id).ended
    assert isinstance(ended, RunEnd)
    assert (ended.unheard, ended.session, [word.text for word in done.unheard]) == (1, done.session, ["two"])


def test_an_order_that_is_canceled_can_be_told_nothing_and_decided_no_more(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    wants(plane, oka, order)
    assert cancel(plane.core, plane.admin, order.order_id).status == "canceling"
    assert code_of(lambda: say(plane, order.order_id, "wait")) == "E-SAY-ENDED"
    assert code_of(lambda: approve(plane, order)) == "E-APPROVAL-NONE"
    decided(oka, order, approved=False, by="interruption")
    receipt = Receipt(at=plane.core.clock.now())
    oka.report(order, oka.ended(status="preempted", exit_status="canceled", receipt=receipt))
    session = plane.reaches(order.order_id, "canceled").session
    with pytest.raises(Conflict) as refused:
        say(plane, order.order_id, "too late")
    assert f"--session {session}" in refused.value.next


def test_a_word_that_is_no_text_or_too_long_or_both_waits_and_interrupts_is_refused(plane: Plane) -> None:
    order_id = plane.submit()
    texts = {"  \n": "E-SAY-EMPTY", "x" * (64 * 1024 + 1): "E-SAY-SIZE", "a\0b": "E-TEXT", "\ud800": "E-TEXT"}
    assert {text: code_of(lambda text=text: say(plane, order_id, text)) for text in texts} == texts
    assert code_of(lambda: say(plane, order_id, "x", after=True, interrupt=True)) == "E-SAY-WHEN"
    assert say(plane, order_id, "x" * 64 * 1024) == "queued"


def test_an_approval_is_told_to_the_drone_and_the_order_goes_on_when_the_run_does(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = running(plane, oka)
    assert code_of(lambda: approve(plane, order)) == "E-APPROVAL-NONE"
    wants(plane, oka, order)
    wait = plane.order(order.order_id).waiting_for
    assert wait is not None
    assert (wait.call_id, wait.tool, wait.why) == ("c1", "shell", WHY)
    assert plane.facts(order.order_id).waits == ForPerson(order=order.order_id, tool="shell", why=WHY)
    listed = reading.list_orders(plane.core, plane.admin, status="awaiting_approval")
    assert [each.waiting_for for each in listed] == [wait]
    assert code_of(lambda: approve(plane, order, call="c9")) == "E-APPROVAL-404"
    approve(plane, order, comment="go")
    assert plane.facts(order.order_id).waits == AnswerOnItsWay(by="system", approved=True, tool="shell")
    plane.until(lambda: told(oka) == [("c1", True, "go")])
    decided(oka, order)
    assert plane.reaches(order.order_id, "running").waiting_for is None
    assert plane.facts(order.order_id).waits == Answered(by="person", approved=True)


def test_the_first_decision_counts_also_the_clocks_and_the_second_names_it(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    wants(plane, oka, order)
    (seen,) = plane.rows(Wait)
    deny(plane, order, comment="not on main")
    for call in (None, "c1"):
        with pytest.raises(Conflict, match="'c1' was already denied"):
            approve(plane, order, call=call)
    with plane.core.database.write() as db:
        assert not answer(db, plane.core, seen, WaitAnswer("approve", "whoever saw it before"))
    plane.until(lambda: told(oka) == [("c1", False, "not on main")])
    wants(plane, oka, order, "c2")
    decided(oka, order, approved=False)
    decided(oka, order, "c2", approved=False, by="clock")
    plane.reaches(order.order_id, "running")
    assert plane.facts(order.order_id).waits == Answered(by="clock")
    assert code_of(lambda: approve(plane, order, call="c2")) == "E-APPROVAL-DECIDED"


def test_always_lets_the_same_command_through_in_later_orders_of_the_session(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka, approve="risky", allow=["git status*"])
    asks(plane, oka, order, ApprovalStep(call_id="c0", tool="editor", why="it changes files"), path="x")
    assert code_of(lambda: approve(plane, order, call="c0", always=True)) != ""
    wants(plane, oka, order, command="git push origin feature-*")
    approve(plane, order, call="c1", always=True)
    inner = ToolCallStep(call_id="c7", tool="shell", arguments={"command": "rm old.txt"})
    oka.report(order, ChildStep(call_id="c2", step=inner.model_dump(mode="json")))
    oka.report(order, ApprovalStep(call_id="c7", tool="shell", why="Deletes files"))
    plane.until(lambda: plane.rows(Wait, Wait.subject == "c7"))
    approve(plane, order, call="c7", always=True)
    oka.report(order, oka.ended())
    plane.reaches(order.order_id, "succeeded")
    later = plane.order(plane.submit(session=plane.order(order.order_id).session))
    # The star that was in the command stands for a star, and for nothing else.
    assert later.allow == ["git status*", "git push origin feature-[*]", "rm old.txt"]
    assert later.approve == "risky"


def test_always_is_refused_for_what_a_session_cannot_hold_and_the_call_waits_on(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = running(plane, oka, approve="risky")
    wants(plane, oka, order, command=f"cat <<E\n{'[' * 700}")
    assert code_of(lambda: approve(plane, order, always=True)) == "E-APPROVAL-ALWAYS"
    approve(plane, order)
    wants(plane, oka, order, "c2", command="git pull")
    session, full = plane.order(order.order_id).session, [f"make {number}" for number in range(100)]
    plane.edit(ChatSession, session, allow=full)
    assert code_of(lambda: approve(plane, order, call="c2", always=True)) == "E-APPROVAL-ALWAYS"
    plane.edit(ChatSession, session, allow=[*full, "git pull"])
    approve(plane, order, call="c2", always=True)
    (kept,) = plane.rows(ChatSession)
    assert kept.allow == [*full, "git pull"]


def test_the_waiting_run_of_a_silent_drone_is_lost_and_what_it_asks_later_does_not_move_the_order(plane: Plane) -> None:
    drone = plane.drone()
    plane.collector(), plane.supervisor(lost_after=0.5)
    order = running(plane, drone, drone=drone.name)
    wants(plane, drone, order)
    plane.core.broker.redis.delete(names.lease_key(drone.id))
    plane.edit(Drone, drone.id, last_seen_at=plane.core.clock.now() - timedelta(minutes=5))
    found = plane.until(lambda: (o := plane.order(order.order_id)).generation == 2 and o)
    assert (found.runs[0].status, found.waiting_for) == ("lost", None)
    assert code_of(lambda: approve(plane, order)) == "E-APPROVAL-NONE"
    drone.report(order, ApprovalStep(call_id="c2", tool="shell", why=WHY))
    plane.until(lambda: [each for each in plane.order(order.order_id).steps if each.kind == "approval"][1:])
    assert plane.status(order.order_id) in {"queued", "assigned"}


def test_what_a_child_spends_and_calls_is_counted(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    said = AssistantStep(text="x", usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.25))
    called = ToolCallStep(call_id="k1", tool="shell", arguments={"command": "ls"})
    children = [ChildStep(call_id="c1", step=body.model_dump(mode="json")) for body in (said, called, said)]
    oka.report(order, *children)
    stats = plane.until(lambda: (s := plane.order(order.order_id).stats).input_tokens == 20 and s)
    assert (stats.tool_calls, stats.output_tokens, stats.cost_usd) == (1, 10, 0.5)
    # An answer that cannot be read makes the cost unknown.
    oka.report(order, ChildStep(call_id="c1", step={"kind": "assistant", "usage": "much"}))
    plane.until(lambda: plane.order(order.order_id).stats.cost_usd is None)


def test_of_two_calls_that_wait_the_first_is_meant_unless_one_is_named_and_who_may_answer_is_a_fact_of_each(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = running(plane, oka)
    wants(plane, oka, order, "c1")
    wants(plane, oka, order, "c2")
    with plane.core.database.write() as db:
        db.execute(update(Wait).values(role="admin"))
    operator = replace(plane, admin=replace(plane.admin, role="operator"))
    assert code_of(lambda: approve(operator, order)) == "E-ROLE"
    deny(plane, order, call="c2")
    approve(plane, order)
    plane.until(lambda: told(oka) == [("c1", True, ""), ("c2", False, "")])
    decided(oka, order)
    plane.until(lambda: (w := plane.order(order.order_id).waiting_for) and w.call_id == "c2")
    assert plane.status(order.order_id) == "awaiting_approval"
    decided(oka, order, "c2", approved=False)
    plane.reaches(order.order_id, "running")


def test_an_answer_is_a_choice_its_number_or_any_text_and_without_choices_a_number_is_a_text() -> None:
    choices = list(QUESTION.choices)
    meant = {" postgresql ": "PostgreSQL", "2": "SQLite", "MySQL, as before": "MySQL, as before", "²": "²"}
    assert {text: chosen(text, choices) for text in meant} == meant
    assert (chosen("17", []), code_of(lambda: chosen("3", choices))) == ("17", "E-ANSWER-CHOICE")


def test_a_question_is_shown_and_its_first_answer_told_also_the_clocks_and_the_order_goes_on_when_the_run_does(
    plane: Plane, oka: DroneStandIn
) -> None:
    order, kim = running(plane, oka), replace(plane.admin, user="kim")
    assert order.questions
    until = plane.core.clock.now() + timedelta(hours=1)
    asks(plane, oka, order, QUESTION.model_copy(update={"until": until}))
    wait = plane.order(order.order_id).waiting_for
    assert wait is not None
    assert (wait.kind, wait.text, wait.choices) == ("question", "Which?", ["PostgreSQL", "SQLite"])
    assert (wait.default, wait.call_id) == ("SQLite", "c1")
    assert wait.deadline == plane.rows(Wait)[0].asked_at + timedelta(hours=1)
    asked = ForPerson(about="question", order=order.order_id, tool="ask", why="Which?")
    assert plane.facts(order.order_id).waits == asked
    refused = [code_of(lambda text=text: answered(plane, order, text)) for text in (" ", "x" * 10_001)]
    assert (refused, told(oka)) == (["E-EMPTY", "E-TOO-LONG"], [])
    assert answered(plane, order, "2", kim).status == "awaiting_approval"
    assert plane.facts(order.order_id).waits == AnswerOnItsWay(about="question", by="kim", approved=True, tool="ask")
    plane.until(lambda: told(oka) == [("c1", True, "SQLite")])
    with pytest.raises(Conflict, match=r"already answered by kim at .* UTC: 'SQLite'"):
        answered(plane, order, "1", call="c1")
    decided(oka, order, about="question", answer="SQLite", who="kim")
    plane.reaches(order.order_id, "running")
    assert plane.facts(order.order_id).waits == Answered(about="question", by="person", approved=True)
    (row,) = plane.rows(Wait)
    assert (row.answer, row.answered_by, row.decided_by) == ("SQLite", "kim", "person")
    assert code_of(lambda: answered(plane, order, "1")) == "E-ANSWER-ANSWERED"

    for call, default in (("d1", "SQLite"), ("d2", "")):
        asks(plane, oka, order, QUESTION.model_copy(update={"call_id": call, "default": default or None}))
        decided(oka, order, call, about="question", approved=bool(default), by="clock", answer=default)
        plane.reaches(order.order_id, "running")
        assert plane.facts(order.order_id).waits == Answered(about="question", by="clock", approved=bool(default))
        assert code_of(lambda: answered(plane, order, "1")) == "E-ANSWER-ANSWERED"


def test_a_question_is_answered_an_approval_is_approved_and_what_is_not_asked_is_neither(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = running(plane, oka)
    assert code_of(lambda: answered(plane, order, "1")) == "E-ANSWER-NONE"
    asks(plane, oka, order)
    wants(plane, oka, order, "c2")
    acts: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: approve(plane, order), "E-APPROVAL-QUESTION"),
        (lambda: deny(plane, order), "E-APPROVAL-QUESTION"),
        (lambda: answered(plane, order, "1", call="c2"), "E-ANSWER-APPROVAL"),
        (lambda: answered(plane, order, "1", call="c9"), "E-ANSWER-404"),
    )
    assert [code_of(act) for act, _ in acts] == [code for _, code in acts]
    cancel(plane.core, plane.admin, order.order_id)
    assert code_of(lambda: answered(plane, order, "1")) == "E-ANSWER-ANSWERED"


def test_the_time_of_a_wait_is_no_working_time_and_a_run_that_ends_meanwhile_ends_its_order(
    plane: Plane, oka: DroneStandIn
) -> None:
    order = running(plane, oka)
    wants(plane, oka, order)
    plane.core.clock.sleep(40)
    waits = plane.order(order.order_id).stats
    assert (waits.working_since, waits.waiting_ms >= 40_000, waits.duration_ms < 40_000) == (None, True, True)
    oka.renew_lease()
    decided(oka, order)
    works, now = plane.reaches(order.order_id, "running").stats, plane.core.clock.now()
    assert works.working_since is not None
    shown = round((now - works.working_since).total_seconds() * 1000)
    assert (works.duration_ms, works.duration_ms < 40_000, works.waiting_ms >= waits.waiting_ms) == (shown, True, True)

    wants(plane, oka, order, "c2")
    oka.report(order, oka.ended(status="failed", exit_status="time_limit", verification="not_reached"))
    found = plane.reaches(order.order_id, "failed")
    assert (found.exit_status, found.waiting_for, found.verification) == ("time_limit", None, "not_reached")
    assert [wait.closed_at is not None for wait in plane.rows(Wait, Wait.subject == "c2")] == [True]
