"""Change the settings of runs that agents, projects and organizations have in common."""

from __future__ import annotations

from typing import Any, Protocol

from control_plane.db.installation import Organization
from control_plane.db.projects import Project
from control_plane.db.teams import Agent
from shared.work_order import ThinkingLevel


class RunSettingsEdit(Protocol):
    """A request that may change them."""

    @property
    def limits(self) -> dict[str, Any] | None: ...
    @property
    def thinking(self) -> ThinkingLevel | None: ...
    @property
    def model_fields_set(self) -> set[str]: ...


def edit_run_settings(row: Organization | Project | Agent, changes: RunSettingsEdit) -> None:
    """Set those that the request gives, for orders that are submitted from now on. Null removes the thinking level."""
    if changes.limits is not None:
        row.limits = changes.limits
    if "thinking" in changes.model_fields_set:
        row.thinking = changes.thinking
