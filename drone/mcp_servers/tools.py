"""A tool of an MCP server as a tool of the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drone.agent.values import ToolResult, ToolSpec
from drone.mcp_servers.failures import ServerFailed
from drone.mcp_servers.listing import Listed
from drone.mcp_servers.results import result_of, shown
from shared.messages import ToolCall

if TYPE_CHECKING:
    from mcp_types import CallToolResult

Ask = Callable[[str, dict[str, Any]], "CallToolResult"]
"""Calls a tool by the server's name for it. Raises ServerFailed, and what the run's check raises."""


@dataclass(frozen=True)
class McpTool:
    """One tool of a server (`drone.agent.protocols.ForeignTool`)."""

    server: str
    listed: Listed
    ask: Ask
    fresh_log: Callable[[], Path]

    @property
    def spec(self) -> ToolSpec:
        return self.listed.spec

    @property
    def read_only(self) -> bool:
        return self.listed.read_only

    def execute(self, call: ToolCall) -> ToolResult:
        """Forward a call; there is exactly one result, even if the server fails. Raises what the run's check raises."""
        try:
            arguments = _arguments(call.arguments)
        except ValueError as error:
            return ToolResult(f"Error: {self.spec.name}: {error}; send one JSON object", is_error=True)
        log = self.fresh_log()
        try:
            answer = self.ask(self.listed.tool, arguments)
        except ServerFailed as error:
            return shown(f"Error: the MCP server {self.server!r} {error}", log, is_error=True)
        return result_of(answer, log)


def _arguments(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments are not JSON ({error})") from error
    if not isinstance(given, dict):
        raise ValueError("the arguments are not an object")
    return given
