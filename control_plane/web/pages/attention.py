"""The part of the settings that says how a user is notified, and the reports of pages that are in front."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from control_plane.attention.presence import page_in_front, page_left
from control_plane.declarations.attention import KINDS
from control_plane.operations.attention.choices import show
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.forms.fields import FormField, form_fields
from control_plane.web.forms.requests import operation_named, value_at
from control_plane.web.pages.frame import frame_for
from control_plane.web.pages.settings import tabs_for
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page, wants_part
from shared.errors import Refused

router = APIRouter(include_in_schema=False)
KIND_TEXTS = {
    "approvals": "a call waits for approval",
    "questions": "an agent asks a question",
    "tasks": "a task is back with you",
    "checks": "a check of a model or project failed",
    "orders": "an order ended",
    "budgets": "a budget is used up",
    "drones": "a drone needs care",
}


@router.get("/settings/attention")
def attention(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The caller's choices as forms; for a token that belongs to no user, why there are none."""
    part = wants_part(request)
    around = frame_for(request, caller, "settings", ["attention"])
    chosen, problem = None, None
    try:
        chosen = show(core, caller)
    except Refused as error:
        problem = problem_of(request.scope, error).model_dump()
    context = {
        **around,
        "tab": "attention",
        "tabs": tabs_for(caller),
        "chosen": chosen,
        "problem": problem,
        "kinds": [(each, KIND_TEXTS[each]) for each in KINDS],
        "was": {each.name: _text(each, dict(chosen)) for each in _fields()} if chosen else {},
    }
    return page("settings/attention.html" if part else "settings/attention_page.html", context)


@router.post("/presence/{page_name}", status_code=204)
def presence(core: CoreDep, caller: CallerDep, page_name: str, here: Annotated[str, Form(max_length=1)] = "") -> None:
    """A page is in front of its user, or no longer. Sessions that belong to no user are told nothing anyway."""
    if caller.user_id is not None:
        note = page_in_front if here else page_left
        note(core, caller.organization_id, caller.user_id, page_name[:40])


def _fields() -> list[FormField]:
    return form_fields(operation_named("edit_attention"))


def _text(field: FormField, document: dict[str, object]) -> str:
    return "" if field.shape == "secret" else field.text_of(value_at(document, field))
