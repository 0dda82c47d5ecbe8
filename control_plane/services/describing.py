"""An agent's description, written by a model from its instructions (S-012): best effort, on any drone that can."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.models import Order
from control_plane.db.teams import Agent


def ask_description(db: Session, core: Core, agent: Agent, user: str = "") -> str | None:
    """Ask for the agent's description; the order's id, or None where nobody could write one."""
    return None


def described(db: Session, core: Core, order: Order) -> None:
    """Take the description that a service order brought; a failed one leaves the agent without, and that is all."""
