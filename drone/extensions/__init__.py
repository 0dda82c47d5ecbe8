"""Code that owners and projects add to a run: hooks, guardrails and tools, bounded, and harmless if broken.

This module exports the names that extension authors need; docs/extensions.md explains them.
"""

from drone.agent.hooks.events import CANCEL, Block, Patch
from drone.agent.values import ToolResult, Verdict
from shared.messages import Message, ToolCall

__all__ = ["CANCEL", "Block", "Message", "Patch", "ToolCall", "ToolResult", "Verdict"]
