"""The endpoints of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from control_plane.client.http import Doc, HttpCalls, part


class TeamCalls(HttpCalls):
    """A method per endpoint; what each raises is said at `FleetClient`."""

    def create_task(self, request: Mapping[str, Any]) -> Doc:
        """`request`: the fields of `TaskRequest`."""
        return self._object("POST", "/tasks", json=request)

    def list_tasks(self, **filters: Any) -> list[Doc]:
        """Newest first. Filters: status, assignee, project, limit."""
        params = {name: value for name, value in filters.items() if value is not None}
        return self._list("GET", "/tasks", params=params)

    def show_task(self, task_id: str, since: str | None = None) -> Doc:
        """With `since`, an ISO time, without the comments before it."""
        return self._object("GET", f"/tasks/{part(task_id)}", params={"since": since} if since else {})

    def comment_task(self, task_id: str, text: str) -> Doc:
        return self._object("POST", f"/tasks/{part(task_id)}/comments", json={"text": text})

    def preempt_task(self, task_id: str) -> Doc:
        """The task, free of its run; `stopped_run` names that."""
        return self._object("POST", f"/tasks/{part(task_id)}/preempt")

    def done_task(self, task_id: str) -> Doc:
        return self._object("POST", f"/tasks/{part(task_id)}/done")

    def cancel_task(self, task_id: str, reason: str = "") -> Doc:
        return self._object("POST", f"/tasks/{part(task_id)}/cancel", json={"reason": reason})

    def assign_task(self, task_id: str, assignee: str) -> Doc:
        return self._object("POST", f"/tasks/{part(task_id)}/assign", json={"assignee": assignee})
