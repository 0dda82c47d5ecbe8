"""The result of a tool call: a document, or a fleet error in four parts; the only mapping of errors to MCP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from control_plane.web.mcp_server.tools import RESULT
from shared.errors import FleetError


def answered(answer: BaseModel | Sequence[BaseModel]) -> CallToolResult:
    """The result with a document, or with a list of documents under `result`; its text is the same as JSON."""
    if isinstance(answer, BaseModel):
        return _result(answer.model_dump(mode="json"))
    return _result({RESULT: [each.model_dump(mode="json") for each in answer]})


def refused(error: FleetError) -> CallToolResult:
    """The result for an error: `isError`, and as structured content what the problem document says over HTTP.

    An unacceptable argument is also reported this way, not as a protocol error: the model must read it and correct the
    call.
    """
    return _result(error_document(error), is_error=True)


def error_document(error: FleetError) -> dict[str, Any]:
    """`code, what, why, next, status, help` of an error."""
    return {
        "code": error.code,
        "what": error.what,
        "why": error.why or None,
        "next": error.next or None,
        "status": error.http_status,
        "help": error.help,
    }


def _result(document: dict[str, Any], *, is_error: bool = False) -> CallToolResult:
    text = TextContent(type="text", text=json.dumps(document, ensure_ascii=False))
    return CallToolResult(content=[text], structured_content=document, is_error=is_error)
