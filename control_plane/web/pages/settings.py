"""Settings: organizations, theme; users, tokens and log-ins; notifications; the audit log; the server's checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.contract.declarations.attention import KINDS
from control_plane.contract.declarations.audit import AuditFilter
from control_plane.contract.declarations.operation import Role
from control_plane.contract.validation.invalid_requests import checked
from control_plane.core import Caller, Core
from control_plane.operations import doctor, memory, profiles
from control_plane.operations.access import login_sessions, tokens, users
from control_plane.operations.access.roles import may
from control_plane.operations.attention import choices
from control_plane.operations.audit import reading as audit
from control_plane.operations.drones import managing
from control_plane.operations.gateway import if_permitted
from control_plane.operations.organizations import reading as organizations
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.forms.fields import FormField, form_fields
from control_plane.web.forms.requests import operation_named, value_at
from control_plane.web.pages.frame import frame_for
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page, wants_part
from shared.errors import Invalid, Refused

router = APIRouter(prefix="/settings", include_in_schema=False)
SHOWN = 50
TABS: Sequence[tuple[str, str, str, Role]] = (
    ("general", "/settings", "General", "viewer"),
    ("access", "/settings/access", "Access", "viewer"),
    ("attention", "/settings/attention", "Notifications", "viewer"),
    ("audit", "/settings/audit", "Audit log", "admin"),
    ("health", "/settings/health", "Health", "operator"),
)


@router.get("")
def general(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The organizations, and the theme of this browser."""
    shown = organizations.list_(core, caller) if caller.everywhere else [_own(core, caller)]
    notes = [note for note in memory.list_(core, caller) if note.project is None]
    return _page(request, caller, "general", {"shown": shown, "notes": notes, "profiles": profiles.list_(core, caller)})


@router.get("/access")
def access(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """Users, tokens and log-ins, as far as the caller may see them."""
    context = {
        "users": if_permitted(core, caller, users.list_),
        "join_tokens": if_permitted(core, caller, tokens.list_join_tokens),
        "api_tokens": if_permitted(core, caller, tokens.list_api_tokens),
        "login_sessions": login_sessions.list_login_sessions(core, caller),
    }
    return _page(request, caller, "access", context)


@dataclass(frozen=True)
class AuditView:
    """What the address narrows the audit log to."""

    actor: str = ""
    action: str = ""
    target: str = ""
    outcome: str = ""
    door: str = ""
    code: str = ""
    since: str = ""
    until: str = ""
    before: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> AuditView:
        return cls(**{each.name: query.get(each.name, "").strip() for each in fields(cls)})

    def terms(self) -> dict[str, str]:
        """Those that are given."""
        return {name: value for name, value in asdict(self).items() if value}

    def address(self, **more: str) -> str:
        terms = {name: value for name, value in {**self.terms(), **more}.items() if value}
        return f"/settings/audit?{urlencode(terms)}" if terms else "/settings/audit"

    def chips(self) -> list[tuple[str, str]]:
        """Each term in words, with the address without it."""
        rest = [(name, value) for name, value in self.terms().items() if name != "before"]
        return [(f"{name}: {value}", self.address(before="", **{name: ""})) for name, value in rest]


@router.get("/audit")
def audit_log(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The audit log, newest first, in pages."""
    view, problem, found = AuditView.of(request.query_params), None, []
    try:
        wanted = checked(AuditFilter, {**view.terms(), "limit": SHOWN + 1}, form="correct the filter")
        found = audit.list_records(core, caller, **dict(wanted))
    except Invalid as error:
        problem = problem_of(request.scope, error).model_dump()
    older = view.address(before=str(found[SHOWN - 1].seq)) if len(found) > SHOWN else ""
    context = {"view": view, "records": found[:SHOWN], "older": older, "problem": problem}
    return _page(request, caller, "audit", context, problem["status"] if problem else 200)


@router.get("/health")
def health(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The server's checks, and the state of the drones' keys. Raises Forbidden for a viewer."""
    context = {"checks": doctor.doctor(core, caller), "drones": managing.list_drones(core, caller)}
    return _page(request, caller, "health", context)


def _page(request: Request, caller: Caller, tab: str, context: dict[str, Any], status: int = 200) -> Response:
    part = wants_part(request)
    around = frame_for(request, caller, "settings", ["settings"])
    context = {**around, **context, "tab": tab, "tabs": tabs_for(caller), "part": str(request.url.path)}
    return page(f"settings/{tab}.html" if part else f"settings/{tab}_page.html", context, status)


def tabs_for(caller: Caller) -> list[tuple[str, str, str]]:
    """The parts of the settings that the caller may open: name, address and label."""
    return [(name, href, label) for name, href, label, role in TABS if may(caller, role)]


def _own(core: Core, caller: Caller) -> Any:
    return organizations.show(core, caller, caller.organization)


# --- how a user is notified -----------------------------------------------------------------------

KIND_TEXTS = {
    "approvals": "a call waits for approval",
    "questions": "an agent asks a question",
    "tasks": "a task is back with you",
    "checks": "a check of a model or project failed",
    "orders": "an order ended",
    "budgets": "a budget is used up",
    "drones": "a drone needs care",
}


@router.get("/attention")
def attention(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The caller's choices as forms; for a token that belongs to no user, why there are none."""
    part = wants_part(request)
    around = frame_for(request, caller, "settings", ["attention"])
    chosen, problem = None, None
    try:
        chosen = choices.show(core, caller)
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


def _fields() -> list[FormField]:
    return form_fields(operation_named("edit_attention"))


def _text(field: FormField, document: dict[str, object]) -> str:
    return "" if field.shape == "secret" else field.text_of(value_at(document, field))
