"""Browser logins: one-time login links and the sessions that they start."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from control_plane.core import Caller, Core, Role
from control_plane.db.access import LoginLink, WebSession
from control_plane.db.installation import Organization
from control_plane.validation.issued_secrets import LOGIN_PREFIX, SESSION_PREFIX, hashed, new_secret
from shared.errors import Unauthenticated
from shared.names import new_id

LINK_LASTS = timedelta(minutes=15)
SESSION_LASTS = timedelta(days=7)


def create_login_link(core: Core, caller: Caller) -> str:
    """A secret that logs in one browser as the caller, once, within 15 minutes."""
    secret, now = new_secret(LOGIN_PREFIX), core.clock.now()
    with core.database.write() as db:
        db.execute(delete(LoginLink).where(LoginLink.expires_at <= now))
        db.add(
            LoginLink(
                id=new_id(),
                organization_id=caller.organization_id,
                secret_hash=hashed(secret),
                role=caller.role,
                everywhere=caller.everywhere,
                created_at=now,
                expires_at=now + LINK_LASTS,
                used_at=None,
            )
        )
    return secret


def use_login_link(core: Core, secret: str) -> tuple[str, Caller]:
    """The secret of a new browser session, and its caller. Raises Unauthenticated for a used or expired link."""
    now = core.clock.now()
    # A single statement claims the link: if two browsers open it at the same time, only one is logged in.
    fresh = LoginLink.used_at.is_(None), LoginLink.expires_at > now
    take = update(LoginLink).where(LoginLink.secret_hash == hashed(secret), *fresh).values(used_at=now)
    with core.database.write() as db:
        link = db.scalar(take.returning(LoginLink))
        if link is None:
            raise Unauthenticated(
                "this login link was already used or has expired",
                code="E-LOGIN-LINK",
                why="a login link works once, within 15 minutes",
                next="fleet login-link    or log in with an API token",
            )
        caller = _caller(db, link)
        return _start(db, core, caller), caller


def start_session(core: Core, caller: Caller) -> str:
    """The secret of a new browser session for a caller with an API token."""
    with core.database.write() as db:
        return _start(db, core, caller)


def authenticate_session(core: Core, secret: str) -> Caller:
    """The caller of a browser session. Raises Unauthenticated if the session has ended."""
    with core.database.read() as db:
        row = db.query(WebSession).filter(WebSession.secret_hash == hashed(secret)).one_or_none()
        if row is None or row.expires_at <= core.clock.now():
            raise Unauthenticated("you are logged out", code="E-SESSION", next="log in again")
        return _caller(db, row)


def end_session(core: Core, secret: str) -> None:
    """Log out a browser. Has no effect if it is already logged out."""
    with core.database.write() as db:
        db.execute(delete(WebSession).where(WebSession.secret_hash == hashed(secret)))


def _start(db: Session, core: Core, caller: Caller) -> str:
    secret, now = new_secret(SESSION_PREFIX), core.clock.now()
    db.execute(delete(WebSession).where(WebSession.expires_at <= now))
    db.add(
        WebSession(
            id=new_id(),
            organization_id=caller.organization_id,
            secret_hash=hashed(secret),
            role=caller.role,
            everywhere=caller.everywhere,
            created_at=now,
            expires_at=now + SESSION_LASTS,
        )
    )
    return secret


def _caller(db: Session, row: LoginLink | WebSession) -> Caller:
    organization = db.get_one(Organization, row.organization_id)
    role = cast("Role", row.role)
    return Caller(organization.id, organization.name, role, user="browser", everywhere=row.everywhere)
