"""MCP servers as tools of a run: what is configured, the connections, and a tool for each of theirs.

`read_configs` gives the servers, `connect` starts them; all of asyncio stays behind that. The mcp package is imported
only where there is a server.
"""

from __future__ import annotations

from drone.mcp_servers.config import ServerConfig
from drone.mcp_servers.files import Configs, read_configs, secrets_of
from drone.mcp_servers.servers import McpServers, connect

__all__ = ["Configs", "McpServers", "ServerConfig", "connect", "read_configs", "secrets_of"]
