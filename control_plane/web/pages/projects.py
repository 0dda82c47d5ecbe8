"""The projects, with the state of their checks."""

from __future__ import annotations

from collections import defaultdict

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.declarations.memory import MemoryDocument
from control_plane.operations import memory, modes, projects
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.frame import frame_for
from control_plane.web.rendering import page, wants_part

router = APIRouter(prefix="/projects", include_in_schema=False)


@router.get("")
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
