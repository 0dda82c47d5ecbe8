"""The pages of sessions: the list, and one with the tree of its turns."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from control_plane.documents.session_tree import note_text, places
from control_plane.operations import sessions
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.shell import shell
from control_plane.web.rendering import page

router = APIRouter(prefix="/sessions", include_in_schema=False)

SHOWN = 200
DEEPEST = 8
"""The maximum indentation: deeper branches of branches are drawn at this depth."""


@router.get("")
def list_sessions(core: CoreDep, caller: CallerDep) -> Response:
    """The newest sessions."""
    return page("sessions.html", {**shell(core, caller), "sessions": sessions.list_(core, caller, None, SHOWN)})


@router.get("/{session_id}")
def show_session(core: CoreDep, caller: CallerDep, session_id: str) -> Response:
    """A session's tree, with a link to each turn's order."""
    session = sessions.show(core, caller, session_id)
    rows = [
        {"entry": place.entry, "depth": min(place.depth, DEEPEST), "notes": [note_text(note) for note in place.notes]}
        for place in places([entry.model_dump() for entry in session.entries])
    ]
    return page("session.html", {**shell(core, caller), "session": session, "rows": rows})
