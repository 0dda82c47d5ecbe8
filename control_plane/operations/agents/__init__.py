"""Agents: the identities that models take on inside an organization, and their reporting hierarchy."""

from control_plane.core.lookups.agents import find_agent
from control_plane.operations.agents.changing import create, edit, remove
from control_plane.operations.agents.reading import list_, show, tree

__all__ = ["create", "edit", "find_agent", "list_", "remove", "show", "tree"]
