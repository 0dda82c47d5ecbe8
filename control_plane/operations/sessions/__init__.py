"""Sessions: chats whose turns run one at a time, in the order of submission, and are stored as a tree."""

from control_plane.core.lookups.sessions import find_session
from control_plane.operations.sessions.changing import compact, create, edit, fork, label, switch
from control_plane.operations.sessions.reading import bundle_of, head_of, list_, show
from control_plane.orders.conversations.new_session import new_session

__all__ = [
    "bundle_of",
    "compact",
    "create",
    "edit",
    "find_session",
    "fork",
    "head_of",
    "label",
    "list_",
    "new_session",
    "show",
    "switch",
]
