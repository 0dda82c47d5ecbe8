"""The end of an agent's run on a task: its last comment decides who is next (S-050 to S-055)."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.models import Order


def run_ended(db: Session, core: Core, order: Order) -> None:
    """Route the task whose newest order has just ended, and begin what may begin now."""
