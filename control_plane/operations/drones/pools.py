"""Pools of ephemeral drones: a name, a join token, and a maximum of drones at the same time."""

from __future__ import annotations

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import pools as declared
from control_plane.contract.declarations.pools import PoolDocument, PoolEdit, PoolRequest, PoolRotation
from control_plane.contract.validation.checks import MAX_NAME, check_labels, check_name, shown, unknown
from control_plane.core import Caller, Core
from control_plane.db.access import JoinToken, Pool
from control_plane.drones.inbox import notify_drone
from control_plane.drones.pool_members import members_of
from control_plane.operations.access.tokens import issue_join_token
from control_plane.operations.drones.joining_pools import SUFFIX_BYTES
from control_plane.operations.gateway import performs
from control_plane.orders.pools import PoolNeed, pool_needs, pools_of
from shared.control import Drain
from shared.errors import Conflict, Invalid
from shared.names import new_id

LONGEST_NAME = MAX_NAME - 1 - 2 * SUFFIX_BYTES
"""So that a dash and the suffix of a drone's name fit."""


@performs(declared.ADD)
def add(core: Core, caller: Caller, request: PoolRequest) -> PoolDocument:
    """Create a pool. Only this answer contains its token. Raises Conflict for a name that is taken, Invalid."""
    name, labels = _checked_name(request.name), check_labels(request.labels)
    pool_id = new_id()
    try:
        with core.database.write() as db:
            values = {"labels": labels, "serves": list[str](), "user_id": caller.user_id, "uses": 0}
            token, text = issue_join_token(db, core, caller, expires_s=request.expires_s, pool_id=pool_id, **values)
            pool = Pool(
                id=pool_id,
                organization_id=caller.organization_id,
                name=name,
                max_drones=request.max_drones,
                token_id=token.id,
                created_at=core.clock.now(),
                removed_at=None,
            )
            db.add(pool)
            db.flush()
            return _document(db, core, (pool, token), text)
    except IntegrityError as error:
        raise Conflict(
            f"pool {shown(name)} already exists",
            code="E-POOL-NAME",
            next=f"choose another name, or change it: fleet pool edit {name}",
        ) from error


def _checked_name(name: str) -> str:
    check_name("pool", name)
    if len(name) > LONGEST_NAME:
        raise Invalid(
            f"invalid pool name {shown(name)}",
            code="E-NAME",
            why=f"it has {len(name)} characters; {LONGEST_NAME} are allowed, so that its drones can be named after it",
            next="fleet pool add SHORTER-NAME",
        )
    return name


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[PoolDocument]:
    """All pools of the organization by name, without their tokens."""
    with core.database.read() as db:
        needs = pool_needs(db, core.clock.now(), pools_of(db, caller.organization_id))
        return [_described(need) for need in needs]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> PoolDocument:
    """One pool. Raises NotFound with similar names."""
    with core.database.read() as db:
        return _document(db, core, _find(db, caller, name))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: PoolEdit) -> PoolDocument:
    """Change the given fields; null removes the labels. Raises NotFound, Invalid."""
    given = changes.model_fields_set
    labels = check_labels(changes.labels or {})
    with core.database.write() as db:
        pool, token = _locked(db, caller, name)
        if changes.max_drones is not None:
            pool.max_drones = changes.max_drones
        if "labels" in given:
            token.labels = labels
        db.flush()
        document = _document(db, core, (pool, token))
    core.broker.wake()
    return document


@performs(declared.ROTATE)
def rotate(core: Core, caller: Caller, name: str, request: PoolRotation) -> PoolDocument:
    """Replace the token. The old one ends at once; drones that joined with it stay. Raises NotFound."""
    with core.database.write() as db:
        pool, old = _locked(db, caller, name)
        _end_tokens(db, core, pool)
        values = {"labels": old.labels, "serves": old.serves, "user_id": caller.user_id, "uses": 0}
        token, text = issue_join_token(db, core, caller, expires_s=request.expires_s, pool_id=pool.id, **values)
        pool.token_id = token.id
        db.flush()
        return _document(db, core, (pool, token), text)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> PoolDocument:
    """End the token, and drain the pool's drones: they finish their runs and leave. Raises NotFound."""
    with core.database.write() as db:
        pool, token = _locked(db, caller, name)
        removed = _document(db, core, (pool, token))
        _end_tokens(db, core, pool)
        pool.removed_at = core.clock.now()
        for drone in members_of(db, [pool.id])[pool.id]:
            drone.draining = True
            notify_drone(db, core, drone.id, Drain(on=True), None)
    core.broker.wake()
    return removed


def _find(db: Session, caller: Caller, name: str) -> tuple[Pool, JoinToken]:
    """The organization's pool with its token. Raises NotFound with similar names."""
    known = {pool.name: (pool, token) for pool, token in pools_of(db, caller.organization_id)}
    if name not in known:
        raise unknown("pool", name, known, "fleet pool ls")
    return known[name]


def _locked(db: Session, caller: Caller, name: str) -> tuple[Pool, JoinToken]:
    """The same for a change: of two rotations at the same time, the second one waits, and then ends the first token."""
    pool, _ = _find(db, caller, name)
    db.refresh(pool, with_for_update=True)
    return pool, db.get_one(JoinToken, pool.token_id)


def _end_tokens(db: Session, core: Core, pool: Pool) -> None:
    valid = JoinToken.pool_id == pool.id, JoinToken.revoked_at.is_(None)
    db.execute(update(JoinToken).where(*valid).values(revoked_at=core.clock.now()))


def _document(db: Session, core: Core, found: tuple[Pool, JoinToken], text: str | None = None) -> PoolDocument:
    return _described(pool_needs(db, core.clock.now(), [found])[0], text)


def _described(need: PoolNeed, text: str | None = None) -> PoolDocument:
    pool, token = need.pool, need.token
    return PoolDocument(
        name=pool.name,
        token=text,
        token_id=token.id,
        labels=token.labels,
        waiting=need.waiting,
        drones=need.drones,
        working=need.working,
        max_drones=pool.max_drones,
        wanted=need.wanted,
        created_at=pool.created_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
    )
