"""The endpoints of what happens by itself: schedules, triggers, webhooks; pull requests, export and import."""

from __future__ import annotations

from control_plane.http_calls import HttpCalls


class AutomationCalls(HttpCalls):
    """A method per endpoint; what each raises is said at `FleetClient`."""
