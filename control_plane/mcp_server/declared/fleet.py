"""Tools for sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from control_plane.core import Caller, Core
from control_plane.declarations.operation import ADDS, READS
from control_plane.documents.sessions import SessionDocument, SessionRequest, SessionSummary
from control_plane.mcp_server.tools import InOrganization, Toolbox, request_of
from control_plane.operations import sessions

TOOLS = Toolbox()
MAX_LISTED = 1000


class SessionFilter(InOrganization):
    project: str | None = Field(None, description="Only sessions of this project (slug). Default: all.")
    limit: int = Field(20, ge=1, le=MAX_LISTED, description="At most so many, the one with the newest turn first.")


class OfSession(InOrganization):
    session_id: str = Field(max_length=64, description="The session's id: 12 hexadecimal characters.")


class NewSession(InOrganization, SessionRequest):
    about: ClassVar[Mapping[str, str]] = {
        "project": "Slug of the project that is worked on; list_projects has them.",
        "name": "A name for people. Default: none.",
        "mode": "The mode of its orders: plan (reads only), build, test, ship or develop.",
        "approve": "Which calls of its orders wait for a person: yolo (none), risky, all. Default: yolo.",
        "allow": "Shell patterns of commands that need no approval, such as `npm test*`. Default: none.",
    }


@TOOLS.declare("List sessions", READS)
def list_sessions(core: Core, caller: Caller, arguments: SessionFilter) -> list[SessionSummary]:
    """The sessions (chats whose orders go on from each other) of the organization, the one with the newest turn
    first."""
    return sessions.list_(core, caller, arguments.project, arguments.limit)


@TOOLS.declare("Show a session", READS)
def get_session(core: Core, caller: Caller, arguments: OfSession) -> SessionDocument:
    """A session with its turns: each with its order's id, prompt, status, response and branch. running is the order
    that has to end before the next one begins."""
    return sessions.show(core, caller, arguments.session_id)


@TOOLS.declare("Begin a session", ADDS)
def create_session(core: Core, caller: Caller, arguments: NewSession) -> SessionDocument:
    """Begin a session on a project: orders that are submitted with its id (submit_order, session) run one after the
    other, remember what was said before, and each starts from the last one's commit. For operators."""
    return sessions.create(core, caller, request_of(SessionRequest, arguments))
