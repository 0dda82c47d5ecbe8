"""Sessions: list them, look at their trees, and change where they go on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from control_plane.documents.sessions import (
    CompactDocument,
    CompactRequest,
    ForkRequest,
    HeadDocument,
    LabelRequest,
    SessionDocument,
    SessionEdit,
    SessionRequest,
    SessionSummary,
    SwitchRequest,
)
from control_plane.operations import sessions
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/sessions", tags=["sessions"])

SessionId = Annotated[str, Path(description="The session's id: 12 hexadecimal characters.", max_length=64)]
MAX_LISTED = 1000


@router.get("", summary="Sessions, the one with the newest turn first", responses=errors(401, 404))
def list_sessions(
    core: CoreDep,
    caller: CallerDep,
    project: Annotated[str | None, Query(description="Slug.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 50,
    every: Annotated[bool, Query(alias="all", description="Also those of tasks and of small services.")] = False,
) -> list[SessionSummary]:
    return sessions.list_(core, caller, project, limit, every=every)


@router.post("", status_code=201, summary="Begin a session", responses=errors(401, 403, 404, 413))
def create_session(core: CoreDep, caller: CallerDep, request: SessionRequest) -> SessionDocument:
    return sessions.create(core, caller, request)


@router.get("/{session_id}", summary="A session with its tree", responses=errors(401, 404))
def show_session(core: CoreDep, caller: CallerDep, session_id: SessionId) -> SessionDocument:
    return sessions.show(core, caller, session_id)


@router.patch("/{session_id}", summary="Change the fields that are given", responses=errors(401, 403, 404, 413))
def edit_session(core: CoreDep, caller: CallerDep, session_id: SessionId, request: SessionEdit) -> SessionDocument:
    return sessions.edit(core, caller, session_id, request)


@router.post("/{session_id}/switch", summary="Go on from another turn", responses=errors(401, 403, 404, 409))
def switch_session(core: CoreDep, caller: CallerDep, session_id: SessionId, request: SwitchRequest) -> SessionDocument:
    """409 while an order of the session has not ended. Nothing is lost: the turns that are left stay in the tree."""
    return sessions.switch(core, caller, session_id, request)


@router.post(
    "/{session_id}/fork",
    status_code=201,
    summary="A new session from a turn",
    responses=errors(401, 403, 404, 409, 413),
)
def fork_session(
    core: CoreDep, caller: CallerDep, session_id: SessionId, request: ForkRequest | None = None
) -> SessionDocument:
    """409 while an order of the session has not ended."""
    return sessions.fork(core, caller, session_id, request or ForkRequest())


@router.post("/{session_id}/labels", summary="Label a turn", responses=errors(401, 403, 404, 413))
def label_entry(core: CoreDep, caller: CallerDep, session_id: SessionId, request: LabelRequest) -> SessionDocument:
    return sessions.label(core, caller, session_id, request)


@router.post("/{session_id}/compact", summary="Ask for a compaction", responses=errors(401, 403, 404, 413))
def compact_session(
    core: CoreDep, caller: CallerDep, session_id: SessionId, request: CompactRequest | None = None
) -> CompactDocument:
    """A running order is told; an idle session keeps it for its next turn."""
    return sessions.compact(core, caller, session_id, request or CompactRequest())


@router.get("/{session_id}/head", summary="The last work, and where it can be had", responses=errors(401, 404))
def show_head(core: CoreDep, caller: CallerDep, session_id: SessionId) -> HeadDocument:
    return sessions.head_of(core, caller, session_id)


@router.get(
    "/{session_id}/bundle",
    summary="The last work as a git bundle",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}, **errors(401, 404)},
)
def show_bundle(core: CoreDep, caller: CallerDep, session_id: SessionId) -> Response:
    """Builds on what the remote had when the order ran."""
    return Response(sessions.bundle_of(core, caller, session_id), media_type="application/octet-stream")
