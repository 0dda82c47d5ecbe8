"""Listing and ending browser sessions."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, Select, false, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import tokens as declared
from control_plane.contract.declarations.tokens import LoginSessionDocument
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.db.access import ApiToken, WebSession
from control_plane.db.users import User
from control_plane.operations.access.logins import session_is_valid
from control_plane.operations.access.roles import may, require_everywhere
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import NotFound


@performs(declared.LIST_LOGIN_SESSIONS)
def list_login_sessions(core: Core, caller: Caller) -> list[LoginSessionDocument]:
    """The valid sessions that the caller may end, newest first."""
    newest_first = WebSession.created_at.desc(), WebSession.id
    with core.database.read() as db:
        rows = db.scalars(_visible(caller, core.clock.now()).order_by(*newest_first)).all()
        return [_document(db, caller, row) for row in rows]


@performs(declared.END_LOGIN_SESSION)
def end_login_session(core: Core, caller: Caller, login_session_id: str) -> LoginSessionDocument:
    """End a session with immediate effect.

    As with tokens, a session that may act everywhere can only be ended with the log-in or the token that it comes from,
    or by a caller that may do so too.
    """
    with core.database.write() as db:
        row = db.scalar(_visible(caller, core.clock.now()).where(WebSession.id == login_session_id))
        if row is None:
            raise NotFound(
                f"login session {shown(login_session_id)} not found",
                code="E-LOGIN-SESSION-404",
                next="fleet login-session ls",
            )
        ended = _document(db, caller, row)
        if row.everywhere and not _is_own(caller, ended):
            require_everywhere(caller)
        db.delete(row)
        return ended


def _visible(caller: Caller, now: datetime) -> Select[WebSession]:
    """The valid sessions of the caller's own token and person, and for an admin those in the organization.

    Those of the person in other organizations are for callers who may act everywhere, or logged in with the identity
    provider: an organization's admin can make a token in the name of each of its users.
    """
    visible: ColumnElement[bool] = false()
    here = WebSession.organization_id == caller.organization_id
    if caller.token_id is not None:
        visible |= WebSession.token_id == caller.token_id
    if caller.user_id is not None:
        by_token = WebSession.token_id.in_(select(ApiToken.id).where(ApiToken.user_id == caller.user_id))
        theirs = by_token | (WebSession.user_id == caller.user_id)
        visible |= theirs if caller.everywhere or caller.token_id is None else theirs & here
    if may(caller, "admin"):
        visible |= here
    return select(WebSession).where(session_is_valid(now), visible)


def _is_own(caller: Caller, session: LoginSessionDocument) -> bool:
    """Whether it comes from the caller's token, or from their log-in at the identity provider.

    Another token in the user's name may be that of an organization's admin, who made it.
    """
    if caller.token_id is not None:
        return session.token_id == caller.token_id
    return session.user_id is not None and session.user_id == caller.user_id


def _document(db: Session, caller: Caller, row: WebSession) -> LoginSessionDocument:
    token = db.get_one(ApiToken, row.token_id) if row.token_id is not None else None
    user_id = row.user_id if token is None else token.user_id
    current = row.id == caller.login_session_id
    user = db.get(User, user_id) if user_id is not None else None
    named = {"user_id": user.id, "user": user.name} if user else {"user_id": None, "user": None}
    return document_of(LoginSessionDocument, row, token_name=token.name if token else "", current=current, **named)
