"""Browser logins: one-time login links and the sessions that they start. Both end with the API token behind them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session

from control_plane.contract.validation.issued_secrets import LOGIN_PREFIX, SESSION_PREFIX, hashed, new_secret
from control_plane.core import Caller, Core
from control_plane.core.audit_entries import entry_of
from control_plane.db.access import ApiToken, LoginLink, WebSession
from control_plane.db.audit_chain import note
from control_plane.db.users import Member, User
from control_plane.operations.access.callers import caller_of, caller_of_user, require_token
from control_plane.operations.access.validity import is_valid
from shared.errors import Forbidden, Unauthenticated
from shared.names import new_id

LOG_IN, LOG_OUT = "log_in", "log_out"
LINK_LASTS = timedelta(minutes=15)
SESSION_LASTS = timedelta(days=7)
NO_KEY = "none"
"""In place of a key's hash: the session's forms need no key."""
LEAST_KEY = 32
"""Characters of a browser's key; a shorter one is none."""


@dataclass(frozen=True)
class Browser:
    """The browser that logs in."""

    address: str = ""
    """Its network address."""
    key: str = ""
    """A secret that it keeps besides its cookie, if it can."""
    without_key: bool = False
    """Its user has scripts off, and accepts that the cookie alone sends forms."""


def create_login_link(core: Core, caller: Caller) -> str:
    """A secret that logs in one browser as the caller, once, within 15 minutes. Raises Forbidden without a token."""
    require_token(caller)
    secret, now = new_secret(LOGIN_PREFIX), core.clock.now()
    with core.database.write() as db:
        db.execute(delete(LoginLink).where(LoginLink.expires_at <= now))
        db.add(
            LoginLink(
                id=new_id(),
                organization_id=caller.organization_id,
                token_id=caller.token_id,
                secret_hash=hashed(secret),
                role=caller.role,
                everywhere=caller.everywhere,
                created_at=now,
                expires_at=now + LINK_LASTS,
                used_at=None,
            )
        )
    return secret


def use_login_link(core: Core, secret: str, browser: Browser = Browser()) -> tuple[str, Caller]:
    """The secret of a new browser session, and its caller. Raises Unauthenticated for a used or expired link."""
    now = core.clock.now()
    # A single statement claims the link: if two browsers open it at the same time, only one is logged in.
    fresh = LoginLink.used_at.is_(None), LoginLink.expires_at > now, _of_valid_token(LoginLink, now)
    take = update(LoginLink).where(LoginLink.secret_hash == hashed(secret), *fresh).values(used_at=now)
    with core.database.write() as db:
        link = db.scalar(take.returning(LoginLink))
        if link is None:
            raise Unauthenticated(
                "this login link was already used or has expired",
                code="E-LOGIN-LINK",
                why="a login link works once, within 15 minutes, while the API token that created it is valid",
                next="fleet login-link    or log in with an API token",
            )
        caller = _caller(db, link)
        note(db, entry_of(core, caller, LOG_IN, f"login link {link.id}"))
        return _start(db, core, caller, browser), caller


def start_session(core: Core, caller: Caller, browser: Browser = Browser()) -> str:
    """The secret of a new browser session for a caller with an API token."""
    with core.database.write() as db:
        note(db, entry_of(core, caller, LOG_IN))
        return _start(db, core, caller, browser)


def start_session_of_user(
    db: Session, core: Core, member: Member, browser: Browser, lasts: timedelta
) -> tuple[str, WebSession]:
    """A new browser session, and its secret, for a member of an organization, without an API token."""
    secret, now = new_secret(SESSION_PREFIX), core.clock.now()
    row = WebSession(
        id=new_id(),
        organization_id=member.organization_id,
        user_id=member.user_id,
        secret_hash=hashed(secret),
        role=member.role,
        everywhere=False,
        created_at=now,
        last_used_at=now,
        browser_key_hash=_key_hash(browser),
        address=_short(browser.address),
        expires_at=now + lasts,
    )
    db.add(row)
    return secret, row


def authenticate_session(core: Core, secret: str) -> Caller:
    """The caller of a browser session. Raises Unauthenticated if the session or its API token has ended."""
    now = core.clock.now()
    with core.database.read() as db:
        row = db.scalar(select(WebSession).where(WebSession.secret_hash == hashed(secret), session_is_valid(now)))
        if row is None:
            raise Unauthenticated(
                "you are logged out",
                code="E-SESSION",
                why="the session was ended or has expired, or its API token is no longer valid",
                next="log in again",
            )
        return _caller(db, row)


def require_browser_key(core: Core, login_session_id: str, key: str, *, is_form: bool = False) -> None:
    """Check that the browser that logged in has this key. Raises Forbidden.

    A form of a page needs none in a session that was begun without scripts, if its user chose that.
    """
    accepted = {hashed(key), NO_KEY} if is_form else {hashed(key)}
    same = WebSession.id == login_session_id, WebSession.browser_key_hash.in_(accepted)
    with core.database.read() as db:
        if db.scalar(select(WebSession.id).where(*same)) is None:
            raise Forbidden(
                "this needs the key of the browser that logged in, and the request does not have it",
                code="E-BROWSER-KEY",
                why="the cookie alone only reads pages, because browsers send it to every server of a host",
                next="allow scripts and site data for this address, then log in again; in programs, use an API token",
            )


def end_session(core: Core, secret: str) -> None:
    """Log out a browser. Has no effect if it is already logged out."""
    with core.database.write() as db:
        row = db.scalar(delete(WebSession).where(WebSession.secret_hash == hashed(secret)).returning(WebSession))
        if row is not None:
            note(db, entry_of(core, _caller(db, row), LOG_OUT))


def end_logins_of(db: Session, token_ids: Collection[str]) -> tuple[int, int]:
    """End all sessions of these API tokens, and void their login links. Returns the number of each."""
    sessions = delete(WebSession).where(WebSession.token_id.in_(token_ids)).returning(WebSession.id)
    links = delete(LoginLink).where(LoginLink.token_id.in_(token_ids), LoginLink.used_at.is_(None))
    return len(db.scalars(sessions).all()), len(db.scalars(links.returning(LoginLink.id)).all())


def session_is_valid(now: datetime) -> ColumnElement[bool]:
    """The condition that a session and its API token, or its user, are valid, for a query."""
    return (WebSession.expires_at > now) & (_of_valid_token(WebSession, now) | _of_member())


def _of_member() -> ColumnElement[bool]:
    """Whether it is a session of a member of its organization who is not disabled."""
    member = select(Member.user_id).join(User, User.id == Member.user_id)
    own = Member.user_id == WebSession.user_id, Member.organization_id == WebSession.organization_id
    return member.where(*own, User.disabled_at.is_(None)).correlate(WebSession).exists()


def _of_valid_token(table: type[LoginLink | WebSession], now: datetime) -> ColumnElement[bool]:
    # Checked on every use, besides the deletion on revocation: a token can also expire, or be removed with its
    # organization, and a session may be starting while its token is revoked.
    return table.token_id.in_(select(ApiToken.id).where(is_valid(now)))


def _start(db: Session, core: Core, caller: Caller, browser: Browser) -> str:
    secret, now = new_secret(SESSION_PREFIX), core.clock.now()
    db.execute(delete(WebSession).where(WebSession.expires_at <= now))
    token_ends = db.scalar(select(ApiToken.expires_at).where(ApiToken.id == caller.token_id))
    db.add(
        WebSession(
            id=new_id(),
            organization_id=caller.organization_id,
            token_id=caller.token_id,
            secret_hash=hashed(secret),
            role=caller.role,
            everywhere=caller.everywhere,
            created_at=now,
            last_used_at=now,
            browser_key_hash=_key_hash(browser),
            address=_short(browser.address),
            expires_at=min(now + SESSION_LASTS, token_ends or now + SESSION_LASTS),
        )
    )
    return secret


def _key_hash(browser: Browser) -> str | None:
    if len(browser.key) >= LEAST_KEY:
        return hashed(browser.key)
    return NO_KEY if browser.without_key else None


def _short(address: str) -> str:
    return address[: WebSession.ADDRESS_LENGTH]


def _caller(db: Session, row: LoginLink | WebSession) -> Caller:
    if row.token_id is None and isinstance(row, WebSession):
        return caller_of_user(db, row)
    return caller_of(db, db.get_one(ApiToken, row.token_id), row)
