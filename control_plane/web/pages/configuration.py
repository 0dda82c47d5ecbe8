"""What orders need, and what starts them: projects, model providers with their prices, and automation."""

from __future__ import annotations

from collections import defaultdict

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.contract.declarations.memory import MemoryDocument
from control_plane.operations import memory, modes, prices, projects, providers
from control_plane.operations.automation import schedules, triggers, webhooks
from control_plane.operations.code_hosts import connections as code_hosts
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.frame import frame_for
from control_plane.web.rendering import page, wants_part

router = APIRouter(include_in_schema=False)


@router.get("/projects")
def list_projects(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """All projects of the organization."""
    part = wants_part(request)
    around = frame_for(request, caller, "projects", ["projects"])
    notes: defaultdict[str, list[MemoryDocument]] = defaultdict(list)
    for note in memory.list_(core, caller):
        if note.project is not None:
            notes[note.project].append(note)
    context = {
        **around,
        "projects": projects.list_(core, caller),
        "notes": notes,
        "modes": modes.list_(core, caller),
    }
    return page("projects/list.html" if part else "projects/page.html", context)


@router.get("/models")
def list_models(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """All providers and prices of the organization."""
    part = wants_part(request)
    around = frame_for(request, caller, "models", ["models"])
    context = {**around, "providers": providers.list_(core, caller), "prices": prices.list_(core, caller)}
    return page("models/list.html" if part else "models/page.html", context)


MESSAGES = 50


@router.get("/automation")
def automation(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """Schedules, triggers, code hosts and webhooks of the organization."""
    part = wants_part(request)
    context = {
        **frame_for(request, caller, "automation", ["automation"]),
        "schedules": schedules.list_(core, caller),
        "triggers": triggers.list_(core, caller),
        "code_hosts": code_hosts.list_(core, caller),
        "webhooks": webhooks.list_(core, caller),
    }
    return page("automation/list.html" if part else "automation/page.html", context)


@router.get("/automation/webhooks/{name}")
def webhook(request: Request, core: CoreDep, caller: CallerDep, name: str) -> Response:
    """The newest messages to a webhook, with what became of them."""
    part = wants_part(request)
    context = {
        **frame_for(request, caller, "automation", ["automation"]),
        "webhook": webhooks.show(core, caller, name),
        "messages": webhooks.deliveries(core, caller, name, limit=MESSAGES),
        "most": MESSAGES,
    }
    return page("automation/messages.html" if part else "automation/webhook_page.html", context)


@router.get("/automation/hosts/{name}")
def code_host(request: Request, core: CoreDep, caller: CallerDep, name: str) -> Response:
    """A connection to a code host: who may start work there, and what happened there."""
    part = wants_part(request)
    context = {
        **frame_for(request, caller, "automation", ["automation"]),
        "host": code_hosts.show(core, caller, name),
        "events": code_hosts.events(core, caller, name, limit=MESSAGES),
        "most": MESSAGES,
    }
    return page("automation/host.html" if part else "automation/host_page.html", context)
