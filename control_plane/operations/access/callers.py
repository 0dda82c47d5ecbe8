"""Who a token stands for, directly or through the link or session that comes from it."""

from __future__ import annotations

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.operation import Role
from control_plane.core import Caller
from control_plane.db.access import ApiToken, LoginLink, WebSession
from control_plane.db.installation import Organization
from control_plane.db.users import Member, User
from control_plane.operations.access.roles import lowest
from shared.errors import Forbidden, Unauthenticated


def caller_of(db: Session, token: ApiToken, grant: ApiToken | LoginLink | WebSession) -> Caller:
    """The caller of a valid token, of a link or of a session. Raises Unauthenticated if its user was just removed.

    The role is the lowest of the grant's, the token's and its user's: a change of the user's role counts at once.
    """
    organization = db.get_one(Organization, grant.organization_id)
    member = _member(db, token)
    roles = [cast("Role", each.role) for each in (grant, token)]
    if member is not None:
        roles.append(member[1])
    role = lowest(*roles)
    return Caller(
        organization.id,
        organization.name,
        role,
        user=member[0] if member is not None else token.name or f"{token.role} {token.id}",
        everywhere=grant.everywhere and token.everywhere,
        token_id=token.id,
        user_id=token.user_id,
        login_session_id=grant.id if isinstance(grant, WebSession) else None,
    )


def caller_of_user(db: Session, session: WebSession) -> Caller:
    """The caller of a session that was started with the identity provider. Raises Unauthenticated as above."""
    organization = db.get_one(Organization, session.organization_id)
    joined = select(User.name, Member.role).join(Member, Member.user_id == User.id)
    own = User.id == session.user_id, Member.organization_id == session.organization_id
    found = db.execute(joined.where(*own)).first()
    if found is None:
        raise Unauthenticated("you are logged out", code="E-SESSION", why="the user was removed", next="log in again")
    role = cast("Role", found[1])
    return Caller(
        organization.id,
        organization.name,
        role,
        user=found[0],
        user_id=session.user_id,
        login_session_id=session.id,
    )


def require_token(caller: Caller) -> None:
    """Check that an API token is behind the call, or the control plane itself.

    What is created in a session of the identity provider would outlive it. Raises Forbidden.
    """
    if caller.token_id is None and caller.login_session_id is not None:
        raise Forbidden(
            "tokens and login links cannot be created in a session of the identity provider",
            code="E-OPENID-SESSION",
            why="they would stay valid when the provider removes the user",
            next="use an API token: fleet api-token add, or fleet login-link",
        )


def _member(db: Session, token: ApiToken) -> tuple[str, Role] | None:
    """The name and the role of the token's user in its organization; None for a token that belongs to no user."""
    if token.user_id is None:
        return None
    joined = select(User.name, Member.role).join(Member, Member.user_id == User.id)
    own = User.id == token.user_id, Member.organization_id == token.organization_id
    found = db.execute(joined.where(*own)).first()
    if found is None:
        # The membership ended after the token was found to be valid.
        raise Unauthenticated(
            f"API token {token.id} was revoked", code="E-TOKEN-REVOKED", next="ask an admin for access"
        )
    return found[0], cast("Role", found[1])
