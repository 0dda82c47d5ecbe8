"""The page of a one-use answer link: one question, and buttons that answer it, without a log-in.

A GET changes nothing, because mail programs and chats preview addresses. The holder of the link acts as its user, with
the user's present role, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import Response

from control_plane.attention.answer_links import OpenLink, give_back_link, open_link, take_link
from control_plane.contract.declarations.plans import ApprovePlanRequest, SendBackPlanRequest
from control_plane.contract.declarations.steering import AnswerRequest, ApproveRequest, DenyRequest
from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.operations.orders.answering import answer_order
from control_plane.operations.orders.planning import OutdatedPlan, approve_plan, send_back_plan
from control_plane.operations.orders.steering import approve, deny
from control_plane.operations.row_documents import waiting_document
from control_plane.orders.plan_waits import APPROVE, PLAN
from control_plane.orders.waits import QUESTION
from control_plane.web.access import CoreDep
from control_plane.web.problems import problem_of
from control_plane.web.rendering import BARE, page
from control_plane.web.throttle import throttled
from shared.errors import Invalid, TooLarge
from shared.titles import title

router = APIRouter(prefix="/answer", include_in_schema=False, dependencies=[Depends(throttled("answer link"))])
_HEADERS = {"X-Robots-Tag": "noindex, nofollow"}


@dataclass(frozen=True)
class _Sent:
    """What the holder of the link chose."""

    decision: str
    text: str
    revision: int | None
    """Of a plan: as it was shown."""


def _sent(
    decision: Annotated[str, Form(max_length=20)] = "",
    text: Annotated[str, Form(max_length=20_000)] = "",
    revision: Annotated[int | None, Form()] = None,
) -> _Sent:
    return _Sent(decision, text, revision)


SentDep = Annotated[_Sent, Depends(_sent)]


@router.get("/{secret}")
def show_question(core: CoreDep, secret: str) -> Response:
    """The question, whole; who answered it, if it was answered."""
    with core.database.read() as db:
        link = open_link(db, core, secret)
        return _shown(core, link, db.get_one(Order, link.wait.order_id))


@router.post("/{secret}")
def answer(
    request: Request,
    core: CoreDep,
    secret: str,
    sent: SentDep,
) -> Response:
    """Answer, and use up the link. An invalid answer, or one about an outdated plan, leaves the link as it is."""
    with core.database.read() as db:
        link = open_link(db, core, secret)
        order = db.get_one(Order, link.wait.order_id)
    if not link.is_open:
        return _shown(core, link, order)
    take_link(core, link.id)
    try:
        said = _answered(core, link, sent)
    except (Invalid, TooLarge, OutdatedPlan) as error:
        give_back_link(core, link.id)
        problem = problem_of(request.scope, error)
        # An unpaired surrogate of a request cannot be sent back.
        text = sent.text.encode("utf-8", "replace").decode()
        return _shown(core, link, order, problem=problem.model_dump(), text=text, status=problem.status)
    return _shown(core, link, order, said=said)


def _answered(core: Core, link: OpenLink, sent: _Sent) -> str:
    """Do it through the same operation as everywhere else, and say what was done."""
    order_id, call, caller = link.wait.order_id, link.wait.subject, link.caller
    if link.wait.kind == QUESTION:
        answer_order(core, caller, order_id, AnswerRequest(text=sent.text or sent.decision, call=call))
        return "Your answer was sent to the agent."
    if link.wait.kind == PLAN:
        return _decided_plan(core, link, sent)
    if sent.decision == APPROVE:
        approve(core, caller, order_id, ApproveRequest(call=call, comment=sent.text))
        return "You approved it. The order continues."
    if sent.decision != "deny":
        raise Invalid("choose approve or deny", code="E-ANSWER-DECISION")
    deny(core, caller, order_id, DenyRequest(call=call, comment=sent.text))
    return "You denied it. The agent was told so."


def _decided_plan(core: Core, link: OpenLink, sent: _Sent) -> str:
    order_id = link.wait.order_id
    read = {"round": int(link.wait.subject.rpartition("-")[2]), "revision": sent.revision}
    if sent.decision == APPROVE:
        approve_plan(core, link.caller, order_id, ApprovePlanRequest(comment=sent.text, **read))
        return "You approved the plan. The agent carries it out."
    if sent.decision != "deny":
        raise Invalid("choose approve or send back", code="E-ANSWER-DECISION")
    send_back_plan(core, link.caller, order_id, SendBackPlanRequest(text=sent.text, **read))
    return "You sent the plan back. The agent revises it."


def _shown(core: Core, link: OpenLink, order: Order, *, status: int = 200, **given: Any) -> Response:
    nothing = {**BARE, "now": core.clock.now(), "problem": None, "text": "", "said": ""}
    wait = link.wait
    shown = {
        "caller": None,
        "user": link.caller.user,
        "wait": wait,
        "is_open": link.is_open,
        "is_question": wait.kind == QUESTION,
        "plan": waiting_document(wait).plan,
        "decided_by": _decided_by(link),
        "title": title(order.prompt, 120) or "Empty prompt",
        "order_id": order.id,
        "command": str(wait.details.get("command", "")),
    }
    return page("answer.html", {**nothing, **shown, **given}, status, _HEADERS)


def _decided_by(link: OpenLink) -> str:
    """Who or what answered before."""
    wait = link.wait
    if wait.answered_at is not None:
        return wait.answered_by or "a user"
    return {"clock": "the time limit", "interruption": "an interruption"}.get(
        wait.decided_by or "", "the end of the run"
    )
