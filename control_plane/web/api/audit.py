"""The export of the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends
from fastapi.responses import StreamingResponse

from control_plane.declarations.audit import AuditExportFilter
from control_plane.operations.audit import exporting
from control_plane.web.access import CallerDep, CoreDep, api_router
from control_plane.web.api.derived_routes import filters_of
from control_plane.web.api.transfer import BODY, LINES, chunks_of
from control_plane.web.openapi import errors

router = api_router("audit", "/audit")


@router.get(
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
