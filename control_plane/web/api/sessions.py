"""The hand-written route of sessions: it answers with a file."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from control_plane.declarations.sessions import BUNDLE
from control_plane.operations import sessions
from control_plane.web.access import CallerDep, CoreDep, api_router
from control_plane.web.openapi import errors

router = api_router("sessions")
SessionId = Annotated[str, Path(description="The session's id, or a unique prefix of it.", max_length=64)]


@router.get(
    BUNDLE.path,
    summary=BUNDLE.summary,
    description=BUNDLE.more,
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}, **errors(401, 403, *BUNDLE.errors)},
)
def show_bundle(core: CoreDep, caller: CallerDep, session_id: SessionId) -> Response:
    return Response(sessions.bundle_of(core, caller, session_id), media_type="application/octet-stream")
