"""Drones, found by name among those that serve the organization."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import unknown
from control_plane.db.drones import Drone

EVERY = "*"
"""In `Drone.serves`: every organization."""


def serves(drone: Drone, organization_id: str) -> bool:
    """Whether the drone works for the organization: its own, or one that it serves."""
    return drone.organization_id == organization_id or organization_id in drone.serves or EVERY in drone.serves


def find_drone(db: Session, organization_id: str, name: str) -> Drone:
    """The living drone with this name that serves the organization. Raises NotFound with similar names.

    The organization's own drone takes precedence over another organization's, and among those the one registered first.
    """
    found = serving(db, organization_id)
    named = [drone for drone in found if drone.name == name]
    if not named:
        raise unknown("drone", name, [drone.name for drone in found], "fleet drones")
    return named[0]


def serving(db: Session, organization_id: str, *, removed: bool = False) -> list[Drone]:
    """The living drones that work for the organization, its own first; with `removed`, also removed ones."""
    every = select(Drone).order_by(Drone.registered_at, Drone.id)
    rows = db.scalars(every if removed else every.where(Drone.removed_at.is_(None)))
    found = [drone for drone in rows if serves(drone, organization_id)]
    return sorted(found, key=lambda drone: drone.organization_id != organization_id)
