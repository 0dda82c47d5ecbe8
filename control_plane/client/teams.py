"""The endpoints of tasks."""

from __future__ import annotations

from control_plane.client.http import Doc, HttpCalls, part


class TeamCalls(HttpCalls):
    """A method per endpoint; `FleetClient` documents what each raises."""

    def show_task(self, task_id: str, since: str | None = None) -> Doc:
        """The task; with `since`, an ISO time, without earlier comments."""
        return self._object("GET", f"/tasks/{part(task_id)}", params={"since": since} if since else {})
