"""API tokens for users and scripts, and join tokens for drones. A secret is shown once and stored as a hash."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control_plane.contract.declarations import tokens as declared
from control_plane.contract.declarations.operation import Role
from control_plane.contract.declarations.tokens import (
    ApiTokenDocument,
    ApiTokenRequest,
    JoinTokenDocument,
    JoinTokenRequest,
    LoginLinkDocument,
)
from control_plane.contract.validation.checks import check_labels, check_text, shown
from control_plane.contract.validation.issued_secrets import API_PREFIX, hashed, new_secret
from control_plane.core import Caller, Core
from control_plane.core.audit_entries import entry_of
from control_plane.core.lookups.organizations import locked_organization, system_caller
from control_plane.core.lookups.users import find_member, member_emails, owner_text
from control_plane.db.access import ApiToken, JoinToken
from control_plane.db.audit_chain import concerns, note
from control_plane.db.users import User
from control_plane.operations.access.callers import caller_of
from control_plane.operations.access.logins import (
    authenticate_session,
    create_login_link,
    end_logins_of,
    end_session,
    start_session,
    use_login_link,
)
from control_plane.operations.access.revocation import require_maker, revoke_with_derived
from control_plane.operations.access.roles import parse_role, require_everywhere
from control_plane.operations.access.validity import acts_everywhere, is_valid, require_valid
from control_plane.operations.drones.visibility import names_known_to, served_ids
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of, served_names
from shared.envelope import key_id
from shared.errors import Conflict, NotFound
from shared.names import new_id
from shared.registration import JoinTokenString

__all__ = [
    "authenticate",
    "authenticate_session",
    "bootstrap_admin",
    "create_api_token",
    "create_join_token",
    "create_login_link",
    "end_session",
    "issue_join_token",
    "list_api_tokens",
    "list_join_tokens",
    "login_link",
    "revoke_api_token",
    "revoke_join_token",
    "start_session",
    "use_login_link",
]

BOOTSTRAP = "bootstrap"


# --- join tokens ------------------------------------------------------------------------


@performs(declared.CREATE_JOIN)
def create_join_token(core: Core, caller: Caller, request: JoinTokenRequest) -> JoinTokenDocument:
    """Create a join token. Only this answer contains its text. Raises NotFound for an owner who is no member."""
    labels = check_labels(request.labels)
    with core.database.write() as db:
        serves = served_ids(db, caller, request.serves)
        owner = caller.user_id if request.owner is None else _locked_member(db, caller, request.owner).id
        values = {"labels": labels, "serves": serves, "user_id": owner, "uses": request.uses}
        row, text = issue_join_token(db, core, caller, expires_s=request.expires_s, **values)
        concerns(row.id)
        return _join_tokens(db, caller, [row], text)[0]


def issue_join_token(
    db: Session, core: Core, caller: Caller, *, expires_s: int, **values: Any
) -> tuple[JoinToken, str]:
    """A new join token with these columns, and its text, of which only the hash is stored.

    Raises Unauthenticated if the caller's own token was revoked meanwhile.
    """
    secret, now = new_secret(), core.clock.now()
    require_maker(db, caller, now)
    row = JoinToken(
        id=new_id(),
        organization_id=caller.organization_id,
        secret_hash=hashed(secret),
        made_by=caller.token_id,
        used=0,
        created_at=now,
        expires_at=now + timedelta(seconds=expires_s),
        revoked_at=None,
        **values,
    )
    db.add(row)
    fingerprint = key_id(core.vault.box_keys(db).current_public_key())
    return row, str(JoinTokenString(secret=secret, fingerprint=fingerprint))


def _locked_member(db: Session, caller: Caller, named: str) -> User:
    """The member. The lock makes a removal at the same moment wait, and then find what is created for them."""
    locked_organization(db, caller.organization_id)
    return find_member(db, caller.organization_id, named)[0]


@performs(declared.LIST_JOIN)
def list_join_tokens(core: Core, caller: Caller) -> list[JoinTokenDocument]:
    """All join tokens, newest first, without their secrets; not those of pools, which are listed with them."""
    own = select(JoinToken).where(JoinToken.organization_id == caller.organization_id, JoinToken.pool_id.is_(None))
    with core.database.read() as db:
        return _join_tokens(db, caller, db.scalars(own.order_by(JoinToken.created_at.desc(), JoinToken.id)))


@performs(declared.REVOKE_JOIN)
def revoke_join_token(core: Core, caller: Caller, token_id: str) -> JoinTokenDocument:
    """Revoke a join token; drones that joined with it stay registered. Idempotent."""
    with core.database.write() as db:
        row = db.get(JoinToken, token_id)
        if row is None or row.organization_id != caller.organization_id:
            raise NotFound(f"join token {shown(token_id)} not found", code="E-JOIN-404", next="fleet token ls")
        row.revoked_at = row.revoked_at or core.clock.now()
        return _join_tokens(db, caller, [row])[0]


def _join_tokens(
    db: Session, caller: Caller, rows: Iterable[JoinToken], token: str | None = None
) -> list[JoinTokenDocument]:
    known, emails = names_known_to(db, caller), member_emails(db, caller.organization_id)
    return [
        document_of(
            JoinTokenDocument,
            row,
            token=token,
            serves=served_names(row.serves, known),
            owner=owner_text(row.user_id, emails),
        )
        for row in rows
    ]


# --- API tokens -------------------------------------------------------------------------


@performs(declared.CREATE_API)
def create_api_token(core: Core, caller: Caller, request: ApiTokenRequest) -> ApiTokenDocument:
    """Create an API token of the caller's organization. Only this answer contains its text.

    Raises Forbidden for a token that may act everywhere, or is another user's who may, unless the caller may do so too;
    NotFound for a user who is no member of the organization.
    """
    if request.everywhere:
        require_everywhere(caller)
    role = parse_role(request.role)
    name = check_text("the token name", request.name, limit=128, empty=True)
    lasts = timedelta(seconds=request.expires_s) if request.expires_s else None
    with core.database.write() as db:
        require_maker(db, caller, core.clock.now())
        row, token = _issue(core, caller, role, name)
        row.everywhere, row.expires_at = request.everywhere, row.created_at + lasts if lasts else None
        if request.user is not None:
            row.user_id = find_member(db, caller.organization_id, request.user)[0].id
            if row.user_id != caller.user_id and acts_everywhere(db, row.user_id, row.created_at):
                require_everywhere(caller)
        db.add(row)
        concerns(row.id)
        return _api_token(db, row, token)


@performs(declared.LIST_API)
def list_api_tokens(core: Core, caller: Caller) -> list[ApiTokenDocument]:
    """All API tokens, newest first, without their secrets."""
    own = select(ApiToken).where(ApiToken.organization_id == caller.organization_id)
    with core.database.read() as db:
        return [_api_token(db, row) for row in db.scalars(own.order_by(ApiToken.created_at.desc(), ApiToken.id))]


@performs(declared.REVOKE_API)
def revoke_api_token(core: Core, caller: Caller, token_id: str) -> ApiTokenDocument:
    """Revoke an API token with immediate effect, and everything that was derived from it. Idempotent.

    `ended` in the answer names what else ended. Raises Conflict if that would be the caller's own token.

    A token that may act everywhere can only be revoked by a caller that may do so too: otherwise an organization's
    admin could lock everyone out.
    """
    return core.database.transact(lambda db: _revoke(db, core, caller, token_id))


def _revoke(db: Session, core: Core, caller: Caller, token_id: str) -> ApiTokenDocument:
    row = db.get(ApiToken, token_id)
    if row is None or row.organization_id != caller.organization_id:
        raise NotFound(f"API token {shown(token_id)} not found", code="E-TOKEN-404", next="fleet api-token ls")
    if row.everywhere:
        require_everywhere(caller)
    ended = revoke_with_derived(db, caller, [row.id], core.clock.now())
    db.refresh(row)
    return _api_token(db, row).model_copy(update={"ended": ended})


@performs(declared.CREATE_LOGIN_LINK)
def login_link(core: Core, caller: Caller) -> LoginLinkDocument:
    """A URL that logs in one browser as the caller, once."""
    secret = create_login_link(core, caller)
    return LoginLinkDocument(url=f"{core.settings.url}/login?token={secret}", secret=secret)


def bootstrap_admin(core: Core, *, only_first: bool = False) -> str:
    """The text of a new admin token for all organizations; requires database access. Revokes the previous one.

    With `only_first`, raises Conflict if a valid token of this kind exists.
    """
    caller = system_caller(core)
    now = core.clock.now()
    working = select(ApiToken.id).where(is_valid(now), ApiToken.role == "admin", ApiToken.everywhere)
    with core.database.write() as db:
        if only_first and db.scalar(working.limit(1)):
            raise Conflict("an admin token already exists", code="E-BOOTSTRAP", next="fleet api-token ls")
        last = ApiToken.name == BOOTSTRAP, ApiToken.everywhere, ApiToken.revoked_at.is_(None)
        revoked = db.scalars(update(ApiToken).where(*last).values(revoked_at=now).returning(ApiToken.id)).all()
        end_logins_of(db, revoked)
        row, token = _issue(core, caller, "admin", BOOTSTRAP)
        row.everywhere = True
        db.add(row)
        note(db, entry_of(core, caller, "bootstrap_admin", row.id))
        return token


def authenticate(core: Core, bearer: str) -> Caller:
    """The caller of an API token. Raises Unauthenticated, which says whether it is unknown, expired or revoked."""
    with core.database.read() as db:
        row = db.scalar(select(ApiToken).where(ApiToken.secret_hash == hashed(bearer)))
        row = require_valid(db, row, core.clock.now())
        return caller_of(db, row, row)


def _api_token(db: Session, row: ApiToken, token: str | None = None) -> ApiTokenDocument:
    user = db.get(User, row.user_id) if row.user_id is not None else None
    return document_of(ApiTokenDocument, row, token=token, user=user.email if user else None, ended=None)


def _issue(core: Core, caller: Caller, role: Role, name: str) -> tuple[ApiToken, str]:
    """A new row, which the caller must add to the session, and the token's text."""
    token = new_secret(API_PREFIX)
    row = ApiToken(
        id=new_id(),
        organization_id=caller.organization_id,
        made_by=caller.token_id,
        name=name,
        role=role,
        everywhere=False,
        secret_hash=hashed(token),
        created_at=core.clock.now(),
        last_used_at=None,
        expires_at=None,
        revoked_at=None,
    )
    return row, token
