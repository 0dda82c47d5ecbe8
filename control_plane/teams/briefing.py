"""What an agent is told of its task: the briefing, block D, and the team around it, blocks B and C (S-070)."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.db.models import Order
from shared.work_order import Team


def team_of(db: Session, order: Order) -> Team | None:
    """The team that an order travels with; None where it is no agent's turn."""
    return None
