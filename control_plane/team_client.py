"""The endpoints of teams: organizations, agents, tasks and their runs."""

from __future__ import annotations

from control_plane.http_calls import HttpCalls


class TeamCalls(HttpCalls):
    """A method per endpoint; what each raises is said at `FleetClient`."""
