"""Revoking API tokens together with everything that was derived from them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, select, update
from sqlalchemy.orm import Session

from control_plane.contract.declarations.tokens import RevocationDocument
from control_plane.core import Caller
from control_plane.db.access import ApiToken, JoinToken
from control_plane.db.drones import Drone
from control_plane.db.users import Member
from control_plane.operations.access.callers import require_token
from control_plane.operations.access.logins import end_logins_of
from control_plane.operations.access.validity import is_valid, require_valid
from shared.errors import Conflict


def revoke_with_derived(db: Session, caller: Caller, token_ids: Collection[str], now: datetime) -> RevocationDocument:
    """Revoke these tokens, and what was created with them: API tokens, join tokens, login links and browser sessions.

    Drones that joined with such a join token stay: they are machines with keys of their own, removed one by one.

    Raises Conflict if the caller's own token would end with another one: a mistake here could lock everyone out.
    """
    derived = _revoked(db, token_ids, now)
    if caller.token_id in derived:
        raise Conflict(
            f"this would also revoke your own API token {caller.token_id}",
            code="E-TOKEN-OWN",
            why="it was created with the token that would be revoked, or with one that was created with it",
            next="repeat it with an independent token, for example of: fleet api-token add --role admin --bootstrap",
        )
    every = {*token_ids, *derived}
    join_tokens = select(JoinToken.id).where(JoinToken.made_by.in_(every))
    drones = select(Drone.name).where(Drone.join_token_id.in_(join_tokens), Drone.removed_at.is_(None))
    sessions, links = end_logins_of(db, every)
    return RevocationDocument(
        api_tokens=derived,
        join_tokens=_end_join_tokens(db, JoinToken.made_by.in_(every), now),
        login_sessions=sessions,
        login_links=links,
        drones=list(db.scalars(drones.order_by(Drone.name))),
    )


def revoke_owned_join_tokens(
    db: Session, ended: RevocationDocument, member: Member, now: datetime
) -> RevocationDocument:
    """Revoke the join tokens that admins created for this member, and add them and the member's drones to `ended`."""
    own = JoinToken.user_id == member.user_id, JoinToken.organization_id == member.organization_id
    revoked = _end_join_tokens(db, and_(*own), now)
    theirs = Drone.user_id == member.user_id, Drone.organization_id == member.organization_id
    drones = db.scalars(select(Drone.name).where(*theirs, Drone.removed_at.is_(None)))
    return ended.model_copy(
        update={"join_tokens": sorted([*ended.join_tokens, *revoked]), "drones": sorted({*ended.drones, *drones})}
    )


def _end_join_tokens(db: Session, which: ColumnElement[bool], now: datetime) -> list[str]:
    """Revoke those of these that could still be used; returns their ids."""
    usable = which, JoinToken.revoked_at.is_(None), JoinToken.expires_at > now
    return sorted(db.scalars(update(JoinToken).where(*usable).values(revoked_at=now).returning(JoinToken.id)))


def require_maker(db: Session, caller: Caller, now: datetime) -> None:
    """Check within the transaction that creates a token that the caller's own is still valid.

    Raises Unauthenticated, and Forbidden in a session without an API token.

    The lock makes a revocation at the same moment wait, and then find the new token.
    """
    require_token(caller)
    if caller.token_id is not None:
        row = db.get(ApiToken, caller.token_id, with_for_update={"read": True}, populate_existing=True)
        require_valid(db, row, now)


def _revoked(db: Session, token_ids: Collection[str], now: datetime) -> list[str]:
    """Revoke the tokens and, level by level, those created with them. Returns the latter that were still valid.

    Each level is locked before the next one is read: a token that is created meanwhile is found. A token that was
    revoked before leads to what was created with it, too.
    """
    level, derived = list(token_ids), list[str]()
    while level:
        revoked_at = func.coalesce(ApiToken.revoked_at, now)
        db.execute(update(ApiToken).where(ApiToken.id.in_(level)).values(revoked_at=revoked_at))
        children = select(ApiToken.id).where(ApiToken.made_by.in_(level))
        derived += db.scalars(children.where(is_valid(now)).order_by(ApiToken.created_at, ApiToken.id))
        level = list(db.scalars(children))
    return derived
