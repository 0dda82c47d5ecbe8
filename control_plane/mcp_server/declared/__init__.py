"""All tools, in the order in which they are listed (S-124): hand-written ones, then the derived ones."""

from control_plane.mcp_server.declared import orders, tasks
from control_plane.mcp_server.derived_tools import tools
from control_plane.mcp_server.tools import ServedTools

TOOLS = ServedTools()
for group in (tasks, orders):
    TOOLS.update(group.TOOLS)
TOOLS.update({tool.name: tool for tool in tools()})

__all__ = ["TOOLS"]
