"""The names of the built-in tools, for what selects from them."""

from __future__ import annotations

from shared.plans import PRESENT, REPORT

ALWAYS = ("todo", "add_comment", "ask", PRESENT, REPORT, "answer_review", "remember", "submit")
"""Tools with which a run talks to its users and ends; no mode takes them away."""
SELECTABLE = ("file_read", "grep", "glob", "web_fetch", "file_write", "editor", "shell", "spawn")
"""Tools that a mode can allow."""
MCP_PREFIX = "mcp__"
"""Names of tools of MCP servers begin with it."""
EXTENSION_PREFIX = "extension:"
"""What stands before the name of an extension's tool where tools are selected."""
