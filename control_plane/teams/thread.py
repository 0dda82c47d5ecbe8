"""A task's thread: comments are added, never changed (S-040)."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.models import Order, Run


def agent_wrote(db: Session, core: Core, order: Order, run: Run, text: str) -> None:
    """Add what the agent of a task's run wrote, under its name. The caller has seen that the run is the current one."""
