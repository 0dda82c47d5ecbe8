"""MCP servers as tools of a run: configuration, connections, and one tool for each tool of a server.

`read_configs` returns the servers, `connect` starts them and hides asyncio. The mcp package is imported only if there
is a server.
"""

from __future__ import annotations

from drone.mcp_servers.config import ServerConfig
from drone.mcp_servers.config_files import Configs, read_configs, secrets_of
from drone.mcp_servers.servers import McpServers, connect

__all__ = ["Configs", "McpServers", "ServerConfig", "connect", "read_configs", "secrets_of"]
