"""The page of an order's plan, and its form: edit, approve ticked points, or send back. It needs no scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from control_plane.contract.declarations.plans import ApprovePlanRequest, EditPlanRequest, SendBackPlanRequest
from control_plane.contract.documents.plans import PlanDocument
from control_plane.core import Caller, Core
from control_plane.operations.drafts import AlreadySent, sending
from control_plane.operations.orders.planning import approve_plan, edit_plan, send_back_plan, show_plan
from control_plane.operations.orders.reading import order_summary
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.destinations import local_page
from control_plane.web.forms.requests import KEY, form_of, key_of_page, named_drafts
from control_plane.web.pages.frame import frame_for
from control_plane.web.presentation import title
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page, wants_part
from shared.errors import Invalid, Refused
from shared.plan_text import plan_text
from shared.plans import MAX_POINTS, AgentPlan, PlanPoint

router = APIRouter(prefix="/orders", include_in_schema=False)
_FIELDS = 5 * (MAX_POINTS + 1) + 20


@dataclass(frozen=True)
class SentPlan:
    """The form as a user sent it."""

    plan: AgentPlan
    comment: str
    act: str
    revision: int
    round: int
    key: str
    """Under which what is decided is recorded, so that it counts once; empty: the form has none."""
    drafts: Mapping[str, str]
    """By the subject of a draft: the text that is sent with the decision."""

    @property
    def title(self) -> str:
        return self.plan.title

    @property
    def summary(self) -> str:
        return self.plan.summary

    @property
    def rows(self) -> tuple[PlanPoint, ...]:
        return self.plan.points

    @classmethod
    def of(cls, form: FormData) -> SentPlan:
        """Points without a text are left out, and the others are in the order of their places."""
        points = [point for _, point in sorted(_points(form), key=lambda each: each[0])]
        comment = _text(form, "comment")
        return cls(
            AgentPlan(title=_text(form, "title"), summary=_text(form, "summary"), points=tuple(points)),
            comment,
            _text(form, "act"),
            _number(_text(form, "revision")),
            _number(_text(form, "round")),
            key_of_page("plan", _text(form, KEY)),
            {subject: comment for name, subject in named_drafts(form) if name == "comment"},
        )


@router.get("/{order_id}/plan")
def plan_page(request: Request, core: CoreDep, caller: CallerDep, order_id: str) -> Response:
    """The plan: a form while it waits, then what became of each point."""
    return _shown(request, core, caller, order_id)


@router.post("/{order_id}/plan")
async def send_plan(request: Request, caller: CallerDep, order_id: str) -> Response:
    """Save, approve or send back. A refusal shows the form again as it was sent, with the reason."""
    form = await form_of(request, caller, _FIELDS)
    return await to_thread.run_sync(_act, request, caller, order_id, form)


def _act(request: Request, caller: Caller, order_id: str, form: FormData) -> Response:
    core: Core = request.app.state.core
    sent = SentPlan.of(form)
    try:
        _do(core, caller, order_id, sent)
    except AlreadySent:
        # The answer was lost on its way, and the page asks again.
        pass
    except Refused as error:
        if request.headers.get("accept") == "application/json":
            raise
        problem = problem_of(request.scope, error)
        return _shown(request, core, caller, order_id, sent=sent, problem=problem.model_dump(), status=problem.status)
    return RedirectResponse(local_page(_text(form, "next") or f"/orders/{order_id}"), 303)


def _do(core: Core, caller: Caller, order_id: str, sent: SentPlan) -> None:
    """Save what was edited, then decide about that. Raises their refusals, and AlreadySent for a decision."""
    if sent.act not in {"approve", "save", "send-back"}:
        raise Invalid("choose approve, save or send back", code="E-PLAN-ACT")
    read = {"revision": sent.revision, "round": sent.round}
    if sent.act != "send-back":
        read["revision"] = _save(core, caller, order_id, sent)
    if sent.act == "save":
        return
    with sending(core, caller, sent.key, sent.drafts):
        if sent.act == "approve":
            approve_plan(core, caller, order_id, ApprovePlanRequest(comment=sent.comment, **read))
        else:
            send_back_plan(core, caller, order_id, SendBackPlanRequest(text=sent.comment, **read))


def _save(core: Core, caller: Caller, order_id: str, sent: SentPlan) -> int:
    """Save what was edited; returns the revision that has it. A plan that is as it was sent is not edited."""
    now = show_plan(core, caller, order_id)
    if sent.round == now.round and sent.plan == _plan_of(now):
        return now.revision
    request = EditPlanRequest(text=plan_text(sent.plan), revision=sent.revision, round=sent.round)
    return edit_plan(core, caller, order_id, request).revision


def _plan_of(document: PlanDocument) -> AgentPlan:
    points = (
        PlanPoint(text=each.text, files=tuple(each.files), verify=each.verify, approved=each.approved)
        for each in document.points
    )
    return AgentPlan(title=document.title, summary=document.summary, points=tuple(points))


def _shown(request: Request, core: Core, caller: Caller, order_id: str, *, status: int = 200, **given: Any) -> Response:
    plan: PlanDocument = show_plan(core, caller, order_id)
    order = order_summary(core, caller, order_id)
    around = frame_for(request, caller, "orders", [f"order:{order.id}"])
    shown = {"order": order, "plan": plan, "title": title(order), "next": f"/orders/{order.id}", "sent": None}
    name = "plan/body.html" if wants_part(request) else "plan/page.html"
    return page(name, {**around, "problem": None, **shown, **given}, status)


def _points(form: FormData) -> Iterator[tuple[int, PlanPoint]]:
    """Each point with a text, and its place."""
    columns = [[str(each) for each in form.getlist(name)] for name in ("text", "files", "verify", "place")]
    ticks = {str(each) for each in form.getlist("tick")}
    for number, (text, files, verify, place) in enumerate(zip(*columns, strict=False), start=1):
        if text.strip():
            names = tuple(filter(None, (each.strip() for each in files.split(","))))
            lines = text.replace("\r\n", "\n").strip()
            point = PlanPoint(text=lines, files=names, verify=verify.strip(), approved=str(number) in ticks)
            yield _number(place, number), point


def _text(form: FormData, name: str) -> str:
    return str(form.get(name, "")).replace("\r\n", "\n").strip()


def _number(text: str, default: int = 0) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else default
