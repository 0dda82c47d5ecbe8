"""Answer the question that an order's agent asked: once, through any door."""

from __future__ import annotations

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import steering as declared
from control_plane.contract.declarations.operation import Role
from control_plane.contract.declarations.steering import AnswerRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.waits import Wait
from control_plane.operations.access.roles import require
from control_plane.operations.gateway import performs
from control_plane.operations.orders.reading import order_summary
from control_plane.operations.orders.steering import waits_of
from control_plane.orders.status_changes import explain
from control_plane.orders.waits import QUESTION, WaitAnswer, answer, decided_by, find_wait, refuse_other, tell_run
from shared.control import Decide
from shared.errors import Conflict, Invalid, NotFound
from shared.reasons import AnswerOnItsWay

MAX_ANSWER = 10_000
"""Characters. The answer becomes the result of a call."""


@performs(declared.ANSWER)
def answer_order(core: Core, caller: Caller, order_id: str, request: AnswerRequest) -> OrderSummary:
    """Answer a waiting question. The first answer counts, and is sent to the drone until it has it.

    Raises NotFound, Invalid for an empty answer or a number that no choice has, and Conflict if no question waits, it
    was answered before, or the order waits for something else.
    """
    order_summary(core, caller, order_id)
    core.database.transact(lambda db: _write(db, core, caller, order_id, request))
    core.broker.changed(order_id)
    return order_summary(core, caller, order_id)


def chosen(text: str, choices: list[str]) -> str:
    """The answer that a text means: a choice by its words or its number, else the text. Raises Invalid."""
    given = text.strip()
    named = [choice for choice in choices if choice.casefold() == given.casefold()]
    if named or not choices or not (given.isascii() and given.isdigit()):
        return named[0] if named else given
    if 1 <= int(given) <= len(choices):
        return choices[int(given) - 1]
    raise Invalid(
        f"there is no choice {shown(given)}: the question has {len(choices)}",
        code="E-ANSWER-CHOICE",
        why="; ".join(f"{number} {choice}" for number, choice in enumerate(choices, start=1)),
        next="answer with a number from 1, a choice or a text of your own",
    )


def _write(db: Db, core: Core, caller: Caller, order_id: str, request: AnswerRequest) -> None:
    order = db.get_one(Order, order_id, with_for_update=True)
    wait = _question(db, order, request.call)
    refuse_other(wait, request.digest)
    require(caller, cast("Role", wait.role))
    text = check_text("the answer", request.text, limit=MAX_ANSWER)
    given = WaitAnswer(chosen(text, wait.choices), caller.user)
    if not answer(db, core, wait, given):
        db.refresh(wait)
        raise _answered(wait)
    decided = Decide(run_id=wait.run_id, call_id=wait.subject, approved=True, answer=given.choice, who=caller.user)
    tell_run(db, core, wait, decided)
    on_its_way = AnswerOnItsWay(about=QUESTION, by=caller.user, approved=True, tool=wait.details["tool"])
    explain(db, order, order.facts.model_copy(update={"waits": on_its_way}))


def _question(db: Db, order: Order, call_id: str | None) -> Wait:
    """The requested question, else the first unanswered one. Raises NotFound and Conflict."""
    waiting = waits_of(db, order)
    asked = waiting if call_id is None else [_named(db, order, call_id)]
    unanswered = [wait for wait in asked if wait in waiting and wait.answered_at is None]
    for wait in unanswered:
        if wait.kind == QUESTION:
            return wait
    if unanswered:
        raise _needs_approval(order, unanswered[0])
    if last := _last_question(db, order, call_id):
        raise _answered(last)
    raise Conflict(
        f"order {order.id} asks no question: it is {order.status}",
        code="E-ANSWER-NONE",
        why=order.reason,
        next=f"fleet show {order.id}",
    )


def _named(db: Db, order: Order, call_id: str) -> Wait:
    wait = find_wait(db, order.run_id, call_id) if order.run_id else None
    if wait is None:
        raise NotFound(
            f"no call {shown(call_id)} of order {order.id} asks a question",
            code="E-ANSWER-404",
            next=f"fleet show {order.id}",
        )
    return wait


def _last_question(db: Db, order: Order, call_id: str | None) -> Wait | None:
    """The newest question of the order's run, or the one with this id."""
    asked = select(Wait).where(Wait.run_id == order.run_id, Wait.kind == QUESTION)
    if call_id is not None:
        asked = asked.where(Wait.subject == call_id)
    return db.scalar(asked.order_by(Wait.number.desc()).limit(1))


def _needs_approval(order: Order, wait: Wait) -> Conflict:
    return Conflict(
        f"order {order.id} asks no question: it waits for a decision",
        code="E-ANSWER-APPROVAL",
        why=wait.details["why"],
        next=f"fleet plan show {order.id}"
        if wait.kind == "plan"
        else f"fleet approve {order.id}    or    fleet deny {order.id}",
    )


def _answered(wait: Wait) -> Conflict:
    """The conflict of an answer that comes too late; it names the first one."""
    if wait.answer is None:
        what = "the question was closed without an answer"
    elif wait.answered_at is None:
        what = f"the question was not answered in time; its default counts: {shown(wait.answer)}"
    else:
        what = f"the question was already answered{decided_by(wait)}: {shown(wait.answer)}; the first answer counts"
    return Conflict(what, code="E-ANSWER-ANSWERED", next=f"fleet say {wait.order_id} TEXT")
