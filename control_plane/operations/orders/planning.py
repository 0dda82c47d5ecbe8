"""The plan of an order: show it, edit it, approve it as a whole or in part, or send it back. Decided once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import plans as declared
from control_plane.contract.declarations.operation import Role
from control_plane.contract.declarations.plans import ApprovePlanRequest, EditPlanRequest, SendBackPlanRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.documents.plans import PlanDocument, plan_document
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.waits import Wait
from control_plane.operations.access.roles import require
from control_plane.operations.gateway import performs
from control_plane.operations.orders.reading import order_summary, plan_of
from control_plane.operations.orders.steering import MAX_COMMENT, waits_of
from control_plane.orders.conversations.plan_progress import plan_of_order
from control_plane.orders.plan_waits import APPROVE, PLAN, SEND_BACK, edit_of, keep_approved, keep_edit
from control_plane.orders.status_changes import explain
from control_plane.orders.waits import WaitAnswer, answer, decided_by, decision_of, tell_run
from shared.errors import Conflict, Invalid, NotFound
from shared.plan_text import NotAPlan, read_plan
from shared.plans import (
    MAX_FILE,
    MAX_FILES,
    MAX_PLAN,
    MAX_POINT,
    MAX_POINTS,
    MAX_SUMMARY,
    MAX_TITLE,
    MAX_VERIFY,
    AgentPlan,
)
from shared.reasons import AnswerOnItsWay


class OutdatedPlan(Conflict):
    """The caller read another state of the plan than the one that waits; it still waits."""


@performs(declared.SHOW)
def show_plan(core: Core, caller: Caller, order_id: str) -> PlanDocument:
    """The plan, as edited, with the report on each point. Raises NotFound, also for an order that needs no plan."""
    found = plan_of(core, caller, order_id)
    if found is None:
        raise _without(order_id)
    return found


@performs(declared.EDIT)
def edit_plan(core: Core, caller: Caller, order_id: str, request: EditPlanRequest) -> PlanDocument:
    """Replace the presented plan; the order keeps waiting.

    Raises NotFound, Invalid for a text that is no plan, Conflict if no plan waits or it was edited meanwhile.
    """
    plan = _read(request.text)
    order_summary(core, caller, order_id)

    def write(db: Db) -> PlanDocument:
        order, wait = _waiting(db, caller, order_id, request)
        keep_edit(wait, plan, caller.user)
        db.flush()
        progress = plan_of_order(db, order)
        assert progress is not None
        return plan_document(progress, edit_of(wait))

    edited = core.database.transact(write)
    core.broker.changed(order_id)
    return edited


@performs(declared.APPROVE)
def approve_plan(core: Core, caller: Caller, order_id: str, request: ApprovePlanRequest) -> OrderSummary:
    """Approve the plan as edited, or only these points of it.

    Raises NotFound, Invalid for points that do not exist or for none, and Conflict if no plan waits, it was decided
    before or edited meanwhile.
    """
    check_text("the comment", request.comment, limit=MAX_COMMENT, empty=True)

    def approved(wait: Wait) -> AgentPlan:
        plan = edit_of(wait).plan
        assert plan is not None
        return _approved(plan, request.points, order_id)

    return _decide(core, caller, order_id, _PlanDecision(request, approved, request.comment))


@performs(declared.SEND_BACK)
def send_back_plan(core: Core, caller: Caller, order_id: str, request: SendBackPlanRequest) -> OrderSummary:
    """Send the plan back with a text, with which its agent revises it. Raises as `approve_plan`."""
    text = check_text("the text", request.text, limit=MAX_COMMENT)
    return _decide(core, caller, order_id, _PlanDecision(request, lambda _: None, text))


# --- deciding ------------------------------------------------------------------------------

_Request = EditPlanRequest | ApprovePlanRequest | SendBackPlanRequest


@dataclass(frozen=True)
class _PlanDecision:
    """What a user decides about the plan that waits."""

    request: ApprovePlanRequest | SendBackPlanRequest
    approved: Callable[[Wait], AgentPlan | None]
    """The plan to carry out; None: it is sent back."""
    comment: str


def _decide(core: Core, caller: Caller, order_id: str, decision: _PlanDecision) -> OrderSummary:
    order_summary(core, caller, order_id)

    def write(db: Db) -> None:
        order, wait = _waiting(db, caller, order_id, decision.request)
        plan = decision.approved(wait)
        given = WaitAnswer(SEND_BACK if plan is None else APPROVE, caller.user, decision.comment)
        if not answer(db, core, wait, given):
            db.refresh(wait)
            raise _decided(wait)
        db.refresh(wait)
        keep_approved(wait, plan)
        db.flush()
        tell_run(db, core, wait, decision_of(wait))
        on_its_way = AnswerOnItsWay(about=PLAN, by=caller.user, approved=plan is not None, tool=wait.details["tool"])
        explain(db, order, order.facts.model_copy(update={"waits": on_its_way}))

    core.database.transact(write)
    core.broker.changed(order_id)
    return order_summary(core, caller, order_id)


def _waiting(db: Db, caller: Caller, order_id: str, request: _Request) -> tuple[Order, Wait]:
    """The order, which stays locked, and its plan that waits, as the caller read it. Raises NotFound and Conflict."""
    order = db.get_one(Order, order_id, with_for_update=True)
    if not order.plan_first:
        raise _without(order_id)
    for wait in waits_of(db, order):
        if wait.kind == PLAN and wait.answered_at is None:
            require(caller, cast("Role", wait.role))
            _refuse_outdated(order, wait, request)
            return order, wait
    raise _none_waits(db, order)


def _refuse_outdated(order: Order, wait: Wait, request: _Request) -> None:
    """Raises Conflict if the caller read another plan, or another state of it, than the one that waits."""
    edit = edit_of(wait)
    if request.round is not None and wait.subject != f"plan-{request.round}":
        raise OutdatedPlan(
            f"the agent of order {order.id} presented another plan meanwhile",
            code="E-PLAN-REVISION",
            why="the plan that you read was sent back",
            next=f"fleet plan show {order.id}",
        )
    if request.revision is not None and request.revision != edit.revision:
        raise OutdatedPlan(
            f"the plan of order {order.id} was edited meanwhile by {edit.user or 'a user'}",
            code="E-PLAN-REVISION",
            why=f"you read revision {request.revision}; it is at revision {edit.revision}",
            next=f"fleet plan show {order.id}",
        )


def _none_waits(db: Db, order: Order) -> Conflict:
    """Why no plan of the order can be decided now."""
    plans = select(Wait).where(Wait.order_id == order.id, Wait.kind == PLAN)
    last = db.scalar(plans.order_by(Wait.number.desc()).limit(1))
    if order.ended_at is None and last is not None and last.answered_at is not None:
        return _decided(last)
    ended = order.ended_at is not None
    return Conflict(
        f"order {order.id} is {order.status}; {'its plan can no longer be decided' if ended else 'no plan waits'}",
        code="E-PLAN-NONE",
        why=order.reason,
        next=f"fleet plan show {order.id}",
    )


def _decided(wait: Wait) -> Conflict:
    """The conflict of a decision that comes too late; it names the first one."""
    if wait.answered_at is None:
        return Conflict("the plan no longer waits", code="E-PLAN-DECIDED", next=f"fleet plan show {wait.order_id}")
    word = "approved" if wait.answer == APPROVE else "sent back"
    return Conflict(
        f"the plan was already {word}{decided_by(wait)}; the first decision counts",
        code="E-PLAN-DECIDED",
        next=f"fleet plan show {wait.order_id}",
    )


def _approved(plan: AgentPlan, numbers: Sequence[int] | None, order_id: str) -> AgentPlan:
    """The plan with these points approved. Raises Invalid if one does not exist, or there is none."""
    unknown = [number for number in numbers or () if not 1 <= number <= len(plan.points)]
    if unknown:
        raise Invalid(
            f"the plan has no point {unknown[0]}; its points are 1 to {len(plan.points)}",
            code="E-PLAN-POINTS",
            next=f"fleet plan show {order_id}",
        )
    approved = plan if numbers is None else plan.approving(numbers)
    if not approved.approved:
        raise Invalid(
            "no point of the plan is approved",
            code="E-PLAN-POINTS",
            why="an approved plan has at least one point to carry out",
            next=f"fleet plan send-back {order_id} TEXT    or    fleet cancel {order_id}",
        )
    return approved


def _without(order_id: str) -> NotFound:
    return NotFound(
        f"order {shown(order_id)} has no plan",
        code="E-PLAN-404",
        why="it was not submitted with --plan-first",
        next="fleet submit PROMPT --plan-first",
    )


# --- reading an edited plan ------------------------------------------------------------------


def _not_a_plan(why: str) -> Invalid:
    return Invalid(
        "the text cannot be read as a plan",
        code="E-PLAN-TEXT",
        why=why,
        next="write `# Title`, then points as `1. [x] What to do`",
    )


def _read(text: str) -> AgentPlan:
    """The plan in the text. Raises Invalid, and TooLarge."""
    check_text("the plan", text, limit=MAX_PLAN)
    try:
        plan = read_plan(text)
    except NotAPlan as error:
        raise _not_a_plan(str(error)) from None
    if problem := _too_much(plan):
        raise _not_a_plan(problem)
    return plan


def _too_much(plan: AgentPlan) -> str:
    """Which limit the plan exceeds; empty: none."""
    if len(plan.points) > MAX_POINTS:
        return f"it has {len(plan.points):,} points; {MAX_POINTS} are allowed"
    if len(plan.title) > MAX_TITLE or len(plan.summary) > MAX_SUMMARY:
        return f"the title may have {MAX_TITLE} characters, and the summary {MAX_SUMMARY:,}"
    for number, point in enumerate(plan.points, start=1):
        if len(point.text) > MAX_POINT or len(point.verify) > MAX_VERIFY:
            return f"the text of point {number} may have {MAX_POINT:,} characters, and its verification {MAX_VERIFY}"
        if len(point.files) > MAX_FILES or any(len(each) > MAX_FILE for each in point.files):
            return f"point {number} may name {MAX_FILES} files, of {MAX_FILE} characters each"
    return ""
