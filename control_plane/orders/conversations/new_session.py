"""A new session."""

from __future__ import annotations

from control_plane.core import Core
from control_plane.db.projects import Project
from control_plane.db.sessions import ChatSession
from shared.names import new_id


def new_session(core: Core, project: Project, mode: str, user_id: str | None) -> ChatSession:
    """A session of this user, not yet added. It has no name: a model or a person gives it one later."""
    return ChatSession(
        id=new_id(),
        organization_id=project.organization_id,
        project_id=project.id,
        name="",
        mode=mode,
        approve=None,
        thinking=None,
        allow=[],
        limits={},
        leaf_id=None,
        compact=None,
        forked_from_id=None,
        user_id=user_id,
        created_at=core.clock.now(),
    )
