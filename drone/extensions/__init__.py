"""Code that owners and projects bring into a run: hooks, guardrails and tools, bounded, and harmless where broken.

What the author of an extension needs is named here; docs/extensions.md explains it.
"""

from drone.agent.hooks.events import CANCEL, Block, Patch
from drone.agent.values import ToolResult, Verdict
from shared.messages import Message, ToolCall

__all__ = ["CANCEL", "Block", "Message", "Patch", "ToolCall", "ToolResult", "Verdict"]
