"""Whether an API token is valid: neither revoked nor expired, and its user, if it has one, may still use it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from control_plane.db.access import ApiToken
from control_plane.db.users import Member, User
from shared.errors import Unauthenticated


def is_valid(now: datetime) -> ColumnElement[bool]:
    """The condition, for a query."""
    return _is_unended(now) & (ApiToken.user_id.is_(None) | _has_member())


def require_valid(db: Session, row: ApiToken | None, now: datetime) -> ApiToken:
    """The token. Raises Unauthenticated, for a token that is unknown, revoked or expired, or whose user is disabled."""
    if row is None:
        what, code = "this API token is unknown", "E-TOKEN-UNKNOWN"
    elif row.revoked_at is not None:
        what, code = f"API token {row.id} was revoked", "E-TOKEN-REVOKED"
    elif row.expires_at is not None and row.expires_at <= now:
        what, code = f"API token {row.id} expired at {row.expires_at:%Y-%m-%d %H:%M} UTC", "E-TOKEN-EXPIRED"
    elif db.scalar(select(ApiToken.id).where(ApiToken.id == row.id, is_valid(now))) is None:
        raise Unauthenticated(
            f"the user of API token {row.id} is disabled",
            code="E-USER-DISABLED",
            next="ask an admin for: fleet user edit USER --enabled",
        )
    else:
        return row
    advice = "ask an admin for: fleet api-token add --role ROLE    then set FLEET_API_TOKEN"
    raise Unauthenticated(what, code=code, next=advice)


def acts_everywhere(db: Session, user_id: str, now: datetime) -> bool:
    """Whether a token of the user may act in every organization, or will when the user is enabled again."""
    own = _is_unended(now), ApiToken.user_id == user_id, ApiToken.everywhere
    return db.scalar(select(ApiToken.id).where(*own).limit(1)) is not None


def _is_unended(now: datetime) -> ColumnElement[bool]:
    """Whether the token is neither revoked nor expired."""
    return ApiToken.revoked_at.is_(None) & (ApiToken.expires_at.is_(None) | (ApiToken.expires_at > now))


def _has_member() -> ColumnElement[bool]:
    """Whether the token's user is a member of its organization, and not disabled."""
    member = select(Member.user_id).join(User, User.id == Member.user_id)
    own = Member.user_id == ApiToken.user_id, Member.organization_id == ApiToken.organization_id
    return member.where(*own, User.disabled_at.is_(None)).correlate(ApiToken).exists()
