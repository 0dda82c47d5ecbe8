"""The frame of every page for a logged-in user: who they are, what they may do, the links with their figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Request

from control_plane.core import Caller, Core
from control_plane.operations.access.roles import may
from control_plane.operations.flower_links import flower_path
from control_plane.operations.organizations import reading as organizations
from control_plane.web.counts import counts_of
from control_plane.web.live.routes import PageStreams
from control_plane.web.live.topics import SHELL, Wanted, version_of
from control_plane.web.rendering import wants_part

Context = dict[str, Any]


def frame(request: Request, caller: Caller, at: str, topics: Sequence[str] = ()) -> Context:
    """The context of the frame. Call it before anything else is read: the versions must not be newer than the page.

    `at` is the name of the page's link in the sidebar; `topics` is what the page shows live.
    """
    core: Core = request.app.state.core
    streams: PageStreams = request.app.state.page_streams
    versions = streams.versions.of(caller, [each for name in topics if (each := Wanted.of(name))])
    counts = counts_of(core, caller)
    return {
        "versions": {SHELL: version_of(counts), **versions},
        "at": at,
        "counts": counts,
        "organizations": _organizations(core, caller),
        **rights(core, caller),
    }


def frame_for(request: Request, caller: Caller, at: str, topics: Sequence[str] = ()) -> Context:
    """The frame of a whole page; for a request of one of its parts, only what parts need of it."""
    return rights(request.app.state.core, caller) if wants_part(request) else frame(request, caller, at, topics)


def rights(core: Core, caller: Caller) -> Context:
    """What a part needs of the frame: the caller and their rights, the time."""
    return {
        "caller": caller,
        "may_submit": may(caller, "operator"),
        "may_admin": may(caller, "admin"),
        "url": core.settings.url,
        "flower_url": flower_path(core, caller),
        "now": core.clock.now(),
    }


def _organizations(core: Core, caller: Caller) -> list[str]:
    """The organizations among which the caller may switch."""
    return organizations.names(core) if caller.everywhere else [caller.organization]
