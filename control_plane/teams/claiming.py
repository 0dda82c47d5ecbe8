"""Which tasks begin now: oldest first, within what the organization and each agent may do at once (S-101, S-102)."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core import Core


def claim_tasks(db: Session, core: Core, organization_id: str) -> list[str]:
    """Begin every open task of the organization that may begin; the ids of the orders that were written.

    Takes the organization's row lock, so that of several processes each counts what the others began.
    """
    return []
