"""Tools for what work runs on: drones and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from control_plane.core import Caller, Core
from control_plane.declarations.operation import ADDS, READS, SETS
from control_plane.documents.drones import DroneDocument
from control_plane.documents.sessions import SessionDocument, SessionRequest, SessionSummary
from control_plane.mcp_server.tools import InOrganization, Toolbox, request_of
from control_plane.operations import sessions
from control_plane.operations.drones import managing

TOOLS = Toolbox()
MAX_LISTED = 1000


class OfDrone(InOrganization):
    name: str = Field(max_length=255, description="The drone's name; list_drones has them.")


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


@TOOLS.declare("List drones", READS)
def list_drones(core: Core, caller: Caller) -> list[DroneDocument]:
    """The drones (workers on people's machines) that serve the organization: status (online, busy, draining,
    unresponsive, offline), labels, how many runs each has in hand (running, of at most concurrency) and how many orders
    wait for it (queued)."""
    return managing.list_drones(core, caller)


@TOOLS.declare("Let a drone take no more orders", SETS)
def drain_drone(core: Core, caller: Caller, arguments: OfDrone) -> DroneDocument:
    """Let a drone finish what it runs and take nothing new, before its machine is switched off for example. Orders
    that wait for it alone go on waiting. resume_drone undoes it. For operators."""
    return managing.set_draining(core, caller, arguments.name, True)


@TOOLS.declare("Let a drone take orders again", SETS)
def resume_drone(core: Core, caller: Caller, arguments: OfDrone) -> DroneDocument:
    """Let a drone that was drained take orders again. For operators."""
    return managing.set_draining(core, caller, arguments.name, False)


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
