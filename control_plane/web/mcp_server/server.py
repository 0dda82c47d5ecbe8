"""The MCP server over the operations: lists the tools, and calls one for a caller that the gate admitted."""

from __future__ import annotations

from functools import partial
from typing import Any

from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from starlette.requests import Request

from control_plane.contract.validation.invalid_requests import checked
from control_plane.core import Caller, Core
from control_plane.core.origin import current_origin
from control_plane.operations.gateway import enter
from control_plane.web.mcp_server.about import INSTRUCTIONS, NAME, TITLE
from control_plane.web.mcp_server.declared import TOOLS
from control_plane.web.mcp_server.results import answered, error_document, refused
from control_plane.web.mcp_server.tools import InOrganization, ServedTool
from control_plane.web.problems import public_error
from shared.errors import NotFound, Refused
from shared.terminal.boundary import version


def mcp_server(core: Core) -> Server[Any]:
    """The server, to be run by a transport that provides the request with its identity (`Gate`)."""

    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[tool.listed for tool in TOOLS.values()])

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise _no_tool(params.name)
        # A call that is canceled while it runs is still carried out, and its answer dropped: each call is a
        # transaction, and none takes long.
        return await to_thread.run_sync(partial(_call, core, context.request, tool, params.arguments or {}))

    return Server(
        NAME,
        version=version(),
        title=TITLE,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: TOOLS[name].listed.input_schema if name in TOOLS else None,
    )


def _call(core: Core, request: Request, tool: ServedTool[Any], given: dict[str, Any]) -> CallToolResult:
    """Call the operation and return its answer, or its error."""
    try:
        arguments = _arguments(tool, given)
        return answered(tool.run(core, _caller(core, request, arguments), arguments))
    except Exception as error:  # noqa: BLE001 - the boundary of a call: the client gets a sentence, the log the rest
        shown = public_error(request.scope, error)
        if isinstance(shown, Refused):
            current_origin().refused_with = shown.code
        return refused(shown)


def _no_tool(name: str) -> MCPError:
    error = NotFound(f"tool {name[:80]!r} not found", code="E-MCP-TOOL", next="call tools/list to see all tools")
    return MCPError(INVALID_PARAMS, error.what, error_document(error))


def _arguments(tool: ServedTool[Any], given: dict[str, Any]) -> Any:
    # An error of the call and not of the protocol: the model must read it and correct the call.
    return checked(tool.arguments, given, form=f"call tools/list to see the arguments of {tool.name}")


def _caller(core: Core, request: Request, arguments: Any) -> Caller:
    """The caller, in the organization that the call names, else the connection (`?org=`), else the token's own."""
    named = arguments.organization if isinstance(arguments, InOrganization) else None
    organization = named if named is not None else request.query_params.get("org")
    return enter(core, request.scope["state"]["identity"], organization)
