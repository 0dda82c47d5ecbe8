"""Ephemeral drones join a pool: as many as it may have at the same time, with names that it makes."""

from __future__ import annotations

import secrets
from datetime import datetime

from sqlalchemy.orm import Session

from control_plane.db.access import JoinToken, Pool
from control_plane.drones.pool_members import is_there, members_of
from shared.errors import Conflict
from shared.registration import RegistrationRequest

SUFFIX_BYTES = 4
"""A made name is the pool's, a dash, and this many bytes in hexadecimal."""


def require_kind(db: Session, token: JoinToken, request: RegistrationRequest) -> None:
    """Raise Conflict if only one of the two, the token and the drone, is for drones that leave."""
    if token.pool_id is None and request.ephemeral:
        raise Conflict(
            f"join token {token.id} belongs to no pool",
            code="E-POOL-KIND",
            why="it is for drones that stay; ephemeral ones need the token of a pool",
            next="fleet pool add NAME        or: drone register --url URL --token TOKEN",
        )
    if token.pool_id is not None and not request.ephemeral:
        raise Conflict(
            f"join token {token.id} belongs to the pool {db.get_one(Pool, token.pool_id).name}",
            code="E-POOL-KIND",
            why="its drones are ephemeral: the control plane removes them when they are offline",
            next="drone start --ephemeral --url URL --token TOKEN        or, to stay: fleet token add",
        )


def made_name(db: Session, token: JoinToken) -> str:
    """A new name for a drone of the token's pool."""
    return f"{db.get_one(Pool, token.pool_id).name}-{secrets.token_hex(SUFFIX_BYTES)}"


def require_room(db: Session, token: JoinToken, now: datetime) -> None:
    """Raise Conflict if the pool of the token has all the drones that it may have.

    The caller has just changed the token's row, which makes other registrations wait until this one is committed.
    """
    if token.pool_id is None:
        return
    pool = db.get_one(Pool, token.pool_id)
    there = sum(is_there(drone, now) for drone in members_of(db, [pool.id])[pool.id])
    if there >= pool.max_drones:
        raise Conflict(
            f"pool {pool.name} is full: {there} of at most {pool.max_drones} drones are there",
            code="E-POOL-FULL",
            next=f"wait until one leaves, or ask an admin for: fleet pool edit {pool.name} --max-drones N",
        )
