"""All tools, in the order in which they are listed (S-124): each a thin function over the operation of its name."""

from control_plane.mcp_server.declared import agents, fleet, orders, organizations, tasks
from control_plane.mcp_server.tools import Toolbox

TOOLS = Toolbox()
for group in (organizations, agents, tasks, orders, fleet):
    TOOLS.update(group.TOOLS)

__all__ = ["TOOLS"]
