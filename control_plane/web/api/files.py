"""Hand-written routes that send or receive files: organizations, the audit log, the bundles of sessions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, BinaryIO

from anyio import to_thread
from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from control_plane.contract.declarations import organizations as declared
from control_plane.contract.declarations.audit import AuditExportFilter
from control_plane.contract.declarations.organizations import OrganizationDocument
from control_plane.contract.declarations.sessions import BUNDLE
from control_plane.operations import sessions, transfer
from control_plane.operations.audit import exporting
from control_plane.operations.gateway import permit
from control_plane.web.access import CallerDep, CoreDep, PersonDep, api_router
from control_plane.web.api.derived_routes import filters_of
from control_plane.web.openapi import errors
from shared.errors import TooLarge

organizations_router = api_router("organizations", "/organizations")

LINES = "application/x-ndjson"
MAX_BYTES = 8 * 1024**3
_CHUNK = 64 * 1024
BODY: dict[str, Any] = {LINES: {"schema": {"type": "string"}}}


@organizations_router.get(
    "/{name}/export",
    summary="Export an organization as JSON Lines",
    response_class=StreamingResponse,
    responses={200: {"content": BODY}, **errors(401, 403, 404)},
)
def export_organization(core: CoreDep, caller: PersonDep, name: str) -> StreamingResponse:
    """Contains no secrets; blobs are named, not included. The last line says what was left out; if it is missing, the
    export is incomplete.
    """
    lines = transfer.export_lines(core, caller, name)
    headers = {"Content-Disposition": 'attachment; filename="organization.jsonl"'}
    return StreamingResponse(chunks_of(lines), media_type=LINES, headers=headers)


@organizations_router.post(
    "/import",
    status_code=201,
    summary="Import an exported organization",
    responses=errors(401, 403, 409, 413),
    openapi_extra={"requestBody": {"required": True, "content": BODY}},
)
async def import_organization(
    core: CoreDep,
    caller: PersonDep,
    request: Request,
    name: Annotated[
        str | None, Query(description="Name of the new organization (default: its exported name).", max_length=64)
    ] = None,
) -> OrganizationDocument:
    """Imports everything or nothing. The organization is paused; `warnings` lists what must be set again."""
    # Before gigabytes are received.
    permit(declared.IMPORT, caller)
    directory = await to_thread.run_sync(lambda: core.blobs.spool)
    with tempfile.TemporaryFile(dir=directory) as spool:
        await _spool(request, spool)
        return await to_thread.run_sync(transfer.import_file, core, caller, spool, name)


def chunks_of(lines: Iterable[str]) -> Iterator[bytes]:
    """The lines, joined to chunks of at least 64 KB; the last one may be smaller."""
    piece = bytearray()
    for line in lines:
        piece += line.encode()
        if len(piece) >= _CHUNK:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


async def _spool(request: Request, spool: BinaryIO) -> None:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BYTES:
            raise TooLarge(f"the file is larger than {MAX_BYTES // 1024**3} GB", code="E-IMPORT-SIZE")
        await to_thread.run_sync(spool.write, chunk)


audit_router = api_router("audit", "/audit")


@audit_router.get(
    "/export",
    summary="Export the audit log as JSON Lines",
    response_class=StreamingResponse,
    responses={200: {"content": BODY}, **errors(401, 403, 404)},
)
def export_audit_log(
    core: CoreDep,
    caller: CallerDep,
    filters: Annotated[dict[str, Any], Depends(filters_of(AuditExportFilter))],
) -> StreamingResponse:
    """Oldest first, with all hashes. The last line has the kind `end`; if it is missing, the export is incomplete."""
    lines = exporting.export_lines(core, caller, **filters)
    headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
    return StreamingResponse(chunks_of(lines), media_type=LINES, headers=headers)


sessions_router = api_router("sessions")
SessionId = Annotated[str, Path(description="The session's id, or a unique prefix of it.", max_length=64)]


@sessions_router.get(
    BUNDLE.path,
    summary=BUNDLE.summary,
    description=BUNDLE.more,
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}, **errors(401, 403, *BUNDLE.errors)},
)
def show_bundle(core: CoreDep, caller: CallerDep, session_id: SessionId) -> Response:
    return Response(sessions.bundle_of(core, caller, session_id), media_type="application/octet-stream")
