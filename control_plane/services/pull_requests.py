"""Pull requests: asked for, opened from a drone's workstation, and noted on the order whose branch they are for."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.models import Order
from shared.events import PullRequestStep


def order_ended(db: Session, core: Core, order: Order) -> None:
    """Ask for a pull request where the project wants one for each order that succeeded and was pushed."""


def noted(db: Session, core: Core, service: Order, step: PullRequestStep) -> None:
    """Write what became of it on the order that it is for."""


def ended(db: Session, core: Core, service: Order) -> None:
    """The service ended; where it told nothing, the order says that its pull request could not be opened, and why."""
