"""`fleet mcp`: a server over stdin and stdout that forwards every call to the control plane's `/mcp`.

The tools are implemented only once. The connection is looked up for each call, so that a restarted control plane is
found again, even at another address with another token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import httpx
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp_types.version import LATEST_MODERN_VERSION

from control_plane.contract.client.http import Doc, HttpCalls, answer_timeout
from control_plane.contract.client.refusals import not_a_fleet, refusal, unreachable
from control_plane.contract.declarations.operation import Tool, every_operation
from control_plane.web.mcp_server.about import INSTRUCTIONS, NAME, PATH, TITLE
from control_plane.web.mcp_server.results import error_document, refused
from shared.errors import FleetError, Unreachable
from shared.terminal.boundary import version


class ToolCalls(HttpCalls):
    """The `/mcp` of one control plane. It has no sessions: each message is independent."""

    def send(self, method: str, params: Mapping[str, Any], organization: str | None) -> Doc:
        """The result of one request.

        Raises MCPError for a protocol error, Unreachable if nothing responds, and the server's refusal if the request
        is refused before the message is read.
        """
        meta = {PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION, CLIENT_CAPABILITIES_META_KEY: {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": LATEST_MODERN_VERSION,
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if "name" in params else {}),
        }
        query = {"org": organization} if organization else {}
        try:
            response = self._connection().post(
                PATH, params=query, json=message, headers=headers, timeout=self._timeout_of(params)
            )
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise unreachable(self.url, error) from error
        return self._result(response)

    def _timeout_of(self, params: Mapping[str, Any]) -> httpx.Timeout:
        longer = _longer_tools() if "name" in params else {}
        return answer_timeout(longer.get(params.get("name", ""), self._timeout_s))

    def _result(self, response: httpx.Response) -> Doc:
        try:
            answer = response.json()
        except ValueError as error:
            raise not_a_fleet(self.url, response) from error
        if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
            raise refusal(self.url, response)
        if "error" in answer:
            raise MCPError.from_error_data(ErrorData.model_validate(answer["error"]))
        return dict(answer["result"])


@cache
def _longer_tools() -> Mapping[str, float]:
    """The tools whose answers may take longer than others, and how many seconds."""
    declared = ((each.tool, each.answers_within) for each in every_operation())
    return {tool.name: seconds for tool, seconds in declared if isinstance(tool, Tool) and seconds is not None}


class Upstream:
    """The selected control plane, looked up for each call."""

    def __init__(self, find: Callable[[], tuple[str, str | None, str]], organization: str | None) -> None:
        """`find` returns the address, the token, and a file with authorities to trust besides the machine's."""
        self._find = find
        self._organization = organization
        self._where: tuple[str, str | None, str] | None = None
        self._calls: ToolCalls | None = None

    def send(self, method: str, params: Mapping[str, Any]) -> Doc:
        """As `ToolCalls.send`; also raises Unreachable if no control plane is selected."""
        where = self._find()
        if self._calls is None or where != self._where:
            url, token, ca_file = self._where = where
            self._calls = ToolCalls(url, token, ca_file=ca_file)
        return self._calls.send(method, params, self._organization)


def proxy(upstream: Upstream) -> Server[Any]:
    """The server whose tools are those of `upstream`."""

    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return await to_thread.run_sync(partial(_list, upstream), abandon_on_cancel=True)

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        return await to_thread.run_sync(partial(_call, upstream, params), abandon_on_cancel=True)

    return Server(
        NAME,
        version=version(),
        title=TITLE,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(upstream: Upstream) -> None:
    """Answer messages on stdin until it ends. Only the protocol is written to stdout."""
    server = proxy(upstream)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _list(upstream: Upstream) -> ListToolsResult:
    """The control plane's tools; our own while it is unavailable, because clients ask once and keep the answer."""
    try:
        return ListToolsResult.model_validate(upstream.send("tools/list", {}))
    except Unreachable:
        from control_plane.web.mcp_server.declared import TOOLS

        return ListToolsResult(tools=[tool.listed for tool in TOOLS.values()])
    except FleetError as error:
        raise MCPError(INTERNAL_ERROR, error.what, error_document(error)) from error


def _call(upstream: Upstream, params: CallToolRequestParams) -> CallToolResult:
    try:
        given = {"name": params.name, "arguments": params.arguments or {}}
        return CallToolResult.model_validate(upstream.send("tools/call", given))
    except FleetError as error:
        return refused(error)
