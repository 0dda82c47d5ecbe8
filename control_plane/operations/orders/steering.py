"""Steer an order while it runs: send it messages, and decide the calls that wait for approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from glob import escape
from typing import Any, cast

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import steering as declared
from control_plane.contract.declarations.operation import Role
from control_plane.contract.declarations.steering import ApproveRequest, DecideRequest, DenyRequest, SayRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.runs import Step
from control_plane.db.sessions import ChatSession
from control_plane.db.waits import Wait
from control_plane.operations.access.roles import require
from control_plane.operations.gateway import performs
from control_plane.operations.orders.reading import order_summary
from control_plane.operations.orders.submitting import MAX_ALLOWED, MAX_PATTERN
from control_plane.orders.conversations.steering_messages import has_run, send_steering
from control_plane.orders.plan_waits import APPROVE, PLAN
from control_plane.orders.run_settings import set_limits
from control_plane.orders.status_changes import explain
from control_plane.orders.waits import (
    DENY,
    FINISH,
    QUESTION,
    WaitAnswer,
    answer,
    decided_by,
    find_wait,
    open_waits,
    refuse_other,
    tell_run,
)
from shared.control import Decide
from shared.errors import Conflict, Invalid, NotFound
from shared.reason_text import RAISES
from shared.reasons import AnswerOnItsWay
from shared.states import ENDED, OrderStatus

MAX_SAID = 64 * 1024
"""Bytes. The text becomes one message of the conversation."""
MAX_COMMENT = 4000
_RUNS = (OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL)


@performs(declared.SAY)
def say(core: Core, caller: Caller, order_id: str, request: SayRequest) -> OrderSummary:
    """Send a message to an order. When this returns, the message is kept until a run has received it.

    A run receives it after the results of its current calls, with `after` when the model stops, with `interrupt`
    immediately; a run that has yet to begin receives it when it begins. Raises NotFound, Invalid, and Conflict for an
    order that has ended.
    """
    check_said(request)
    project = order_summary(core, caller, order_id).project

    def write(db: Db) -> None:
        order, message = write_message(db, core, caller, MessageDraft(order_id, project, request))
        pass_on(db, core, order, message)

    core.database.transact(write)
    core.broker.changed(order_id)
    return order_summary(core, caller, order_id)


@performs(declared.APPROVE)
def approve(core: Core, caller: Caller, order_id: str, request: ApproveRequest) -> OrderSummary:
    """Approve a waiting call. The first decision counts, and is sent to the drone until it has it.

    With `always` the same command needs no approval in later orders of the session. Raises NotFound, Invalid, and
    Conflict if nothing waits or the call was decided before.
    """
    return _decide(core, caller, order_id, request, approved=True)


@performs(declared.DENY)
def deny(core: Core, caller: Caller, order_id: str, request: DenyRequest) -> OrderSummary:
    """As `approve`, but the call does not run: the model is notified, with the comment."""
    return _decide(core, caller, order_id, request, approved=False)


# --- saying ------------------------------------------------------------------------------


def check_said(request: SayRequest) -> None:
    """Return if the message is valid. Raises Invalid."""
    size = len(request.text.encode("utf-8", "surrogatepass"))
    if size > MAX_SAID:
        raise Invalid(
            f"the text has {size:,} bytes; {MAX_SAID:,} are allowed",
            code="E-SAY-SIZE",
            next="put it in a file of the repository and refer to that file",
        ).of(request.text)
    if not request.text.strip():
        raise Invalid("the message is empty", code="E-SAY-EMPTY", next="fleet say ORDER 'TEXT'").of(request.text)
    if request.after and request.interrupt:
        raise Invalid(
            "a message can either wait until the model stops or interrupt it",
            code="E-SAY-WHEN",
            next="use only one of the two",
        )
    check_text("the text", request.text, limit=MAX_SAID)


@dataclass(frozen=True)
class MessageDraft:
    """A message from a user, before it is stored."""

    order_id: str
    project: str | None
    """Slug."""
    request: SayRequest


def write_message(db: Db, core: Core, caller: Caller, said: MessageDraft) -> tuple[Order, SteeringMessage]:
    """Store the message to an order, which stays locked. Raises Conflict if the order has ended or is canceling.

    Of this transaction and one that begins a run meanwhile, the second sends the run the message.
    """
    order, request = db.get_one(Order, said.order_id, with_for_update=True, populate_existing=True), said.request
    status = OrderStatus(order.status)
    if status in ENDED or status is OrderStatus.CANCELING:
        raise Conflict(
            f"order {order.id} is {order.status}; no run can receive the message",
            code="E-SAY-ENDED",
            why=order.reason,
            next=f"fleet submit 'TEXT' --project {said.project} --session {order.session_id}",
        )
    word = SteeringMessage(
        organization_id=order.organization_id,
        order_id=order.id,
        user=caller.user,
        text=request.text,
        after=request.after,
        interrupt=request.interrupt,
        alone=request.alone,
        at=core.clock.now(),
    )
    db.add(word)
    db.flush()
    return order, word


def pass_on(db: Db, core: Core, order: Order, message: SteeringMessage) -> None:
    """Send the message to the drone if the order is running; a run that has yet to begin receives it then."""
    if has_run(order):
        send_steering(db, core, order, message, interrupt=message.interrupt)


# --- deciding ----------------------------------------------------------------------------


def _decide(core: Core, caller: Caller, order_id: str, request: DecideRequest, *, approved: bool) -> OrderSummary:
    check_text("the comment", request.comment, limit=MAX_COMMENT, empty=True)
    order_summary(core, caller, order_id)

    def write(db: Db) -> None:
        order = db.get_one(Order, order_id, with_for_update=True)
        wait = _undecided(db, order, request.call)
        refuse_other(wait, request.digest)
        require(caller, cast("Role", wait.role))
        if wait.kind in {QUESTION, PLAN}:
            raise _not_a_decision(order, wait)
        if isinstance(request, ApproveRequest) and request.always:
            _allow(db, order, wait)
        more = _raised(order, wait, request) if approved else {}
        finish = isinstance(request, DenyRequest) and request.finish
        if finish and _limit_of(wait) != "cost":
            raise _nothing_to_finish(order, wait)
        given = WaitAnswer(APPROVE if approved else DENY, caller.user, request.comment)
        if not answer(db, core, wait, given):
            db.refresh(wait)
            raise _decided(wait)
        if finish:
            wait.details = {**wait.details, FINISH: True}
        decided = Decide(
            run_id=wait.run_id,
            call_id=wait.subject,
            approved=approved,
            comment=request.comment,
            finish=finish,
            **more,
        )
        tell_run(db, core, wait, decided)
        pending_answer = AnswerOnItsWay(by=caller.user, approved=approved, tool=wait.details["tool"])
        explain(db, order, order.facts.model_copy(update={"waits": pending_answer}))

    core.database.transact(write)
    core.broker.changed(order_id)
    return order_summary(core, caller, order_id)


_RAISED: Mapping[str, tuple[str, str]] = {
    "cost": ("raise_usd", "cost_limit"),
    "steps": ("raise_steps", "max_iterations"),
    "time": ("raise_seconds", "max_run_seconds"),
}
"""By limit: the field of a request and of the decision that raises it, and the limit's name."""


def _limit_of(wait: Wait) -> str:
    """The limit that the order waits at: cost, steps or time; empty for other waits."""
    return str(wait.details.get("limit", "cost")) if wait.kind == "limit" else ""


def _raised(order: Order, wait: Wait, request: DecideRequest) -> dict[str, Any]:
    """Raise the limit of an order that waits at it; returns by how much, as a field of the decision.

    Raises Invalid if an amount is given for another limit or another wait.
    """
    own = _RAISED.get(_limit_of(wait))
    for field, _ in _RAISED.values():
        if getattr(request, field, None) is not None and (own is None or field != own[0]):
            raise _cannot_raise(order, wait)
    if own is None:
        return {}
    field, name = own
    more = getattr(request, field, None) or order.limits[name]
    set_limits(order, {name: order.limits[name] + more})
    return {field: more}


def _cannot_raise(order: Order, wait: Wait) -> Invalid:
    limit = _limit_of(wait)
    options = f" {RAISES[limit]}" if limit else ""
    return Invalid(
        "an approval can only raise the limit that the order waits at",
        code="E-APPROVAL-RAISE",
        why=wait.details["why"],
        next="fleet budget ls    shows the budgets" if wait.kind == "budget" else f"fleet approve {order.id}{options}",
    )


def _not_a_decision(order: Order, wait: Wait) -> Conflict:
    if wait.kind == PLAN:
        return Conflict(
            f"order {order.id} waits with a plan, which is approved or sent back as a plan",
            code="E-APPROVAL-PLAN",
            why=wait.details["why"],
            next=f"fleet plan approve {order.id}    or    fleet plan send-back {order.id} TEXT",
        )
    return Conflict(
        f"order {order.id} asks a question, which cannot be approved or denied",
        code="E-APPROVAL-QUESTION",
        why=wait.text,
        next=f"fleet answer {order.id} TEXT",
    )


def _nothing_to_finish(order: Order, wait: Wait) -> Invalid:
    return Invalid(
        "only an order at its cost limit can finish with a summary",
        code="E-APPROVAL-FINISH",
        why=wait.details["why"],
        next=f"fleet deny {order.id}",
    )


def waits_of(db: Db, order: Order) -> list[Wait]:
    """The open waits of the order's run, oldest first; includes answered ones that the run has not reported."""
    return open_waits(db, [order.run_id])[order.run_id] if order.run_id and order.status in _RUNS else []


def _undecided(db: Db, order: Order, call_id: str | None) -> Wait:
    """The requested wait, else the first undecided one. Raises NotFound and Conflict."""
    waiting = waits_of(db, order)
    if call_id is not None:
        return _named(db, order, waiting, call_id)
    for wait in waiting:
        if wait.answer is None:
            return wait
    if waiting:
        raise _decided(waiting[0])
    raise Conflict(
        f"nothing in order {order.id} is waiting for approval: the order is {order.status}",
        code="E-APPROVAL-NONE",
        why=order.reason,
        next=f"fleet show {order.id}",
    )


def _named(db: Db, order: Order, waiting: list[Wait], call_id: str) -> Wait:
    wait = find_wait(db, order.run_id, call_id) if order.run_id else None
    if wait is not None and wait.answer is not None:
        raise _decided(wait)
    if wait is not None and wait in waiting:
        return wait
    raise NotFound(
        f"no call {shown(call_id)} of order {order.id} is waiting for approval",
        code="E-APPROVAL-404",
        why=f"waiting: {', '.join(each.subject for each in waiting)}" if waiting else "",
        next=f"fleet show {order.id}",
    )


def _decided(wait: Wait) -> Conflict:
    word = "approved" if wait.answer == APPROVE else "denied"
    what = {"secret": "the delivery", "branch": "the branch"}.get(wait.kind, f"call {shown(wait.subject)}")
    return Conflict(
        f"{what} was already {word}{decided_by(wait)}; the first decision counts",
        code="E-APPROVAL-DECIDED",
    )


def _allow(db: Db, order: Order, wait: Wait) -> None:
    """Allow the command of this call in later orders of the session.

    Raises Invalid if the call runs no command, or one that the session has no room for.
    """
    asked: dict[str, Any] = _tool_call(db, order, wait.subject) or {}
    arguments = asked.get("arguments")
    line = str(arguments.get("command", "")).strip() if isinstance(arguments, dict) else ""
    if wait.details["tool"] != "shell" or not line:
        raise Invalid(
            f"{wait.details['tool']} has no command that can be allowed permanently",
            code="E-APPROVAL-ALWAYS",
            next=f"fleet approve {order.id}    without --always",
        )
    session = db.get_one(ChatSession, order.session_id, with_for_update=True)
    # Exactly this line: wildcard characters in it must not act as wildcards in the list.
    pattern = escape(line)
    if pattern in session.allow:
        return
    if len(pattern) > MAX_PATTERN or len(session.allow) >= MAX_ALLOWED:
        raise Invalid(
            f"session {session.id} cannot allow this command permanently",
            code="E-APPROVAL-ALWAYS",
            why=f"it would be pattern {len(session.allow) + 1}, with {len(pattern):,} characters; {MAX_ALLOWED} with "
            f"up to {MAX_PATTERN:,} characters are allowed",
            next=f"fleet approve {order.id}    without --always",
        )
    session.allow = [*session.allow, pattern]


def _tool_call(db: Db, order: Order, call_id: str) -> dict[str, Any] | None:
    """The body of the call in the current run, or in a child of that run; None if there is none."""
    calls = select(Step.body).where(Step.run_id == order.run_id, Step.kind.in_(("tool_call", "child")))
    for body in db.scalars(calls.order_by(Step.run_seq.desc())):
        own = body["step"] if body["kind"] == "child" else body
        if own.get("kind") == "tool_call" and own.get("call_id") == call_id:
            return dict(own)
    return None
