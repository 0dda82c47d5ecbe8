"""Whether an API token is valid: neither revoked nor expired."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement

from control_plane.db.access import ApiToken
from shared.errors import Unauthenticated


def is_valid(now: datetime) -> ColumnElement[bool]:
    """The condition, for a query."""
    return ApiToken.revoked_at.is_(None) & (ApiToken.expires_at.is_(None) | (ApiToken.expires_at > now))


def require_valid(row: ApiToken | None, now: datetime) -> ApiToken:
    """The token. Raises Unauthenticated, which says whether it is unknown, revoked or expired."""
    if row is None:
        what, code = "this API token is unknown", "E-TOKEN-UNKNOWN"
    elif row.revoked_at is not None:
        what, code = f"API token {row.id} was revoked", "E-TOKEN-REVOKED"
    elif row.expires_at is not None and row.expires_at <= now:
        what, code = f"API token {row.id} expired at {row.expires_at:%Y-%m-%d %H:%M} UTC", "E-TOKEN-EXPIRED"
    else:
        return row
    advice = "ask an admin for: fleet api-token add --role ROLE    then set FLEET_API_TOKEN"
    raise Unauthenticated(what, code=code, next=advice)
