"""Tokens that are issued to drones that join, to people and scripts, and to browsers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from control_plane.contract.declarations.operation import RANKS, About, ByHand, Command, NoDoor, Operation
from control_plane.contract.documents.base import Document, Request

USES = About("uses", "Maximum number of drones that may join with it.")
LABELS = About("labels", "Label k=v fixed on these drones.", flag="--label")
SERVES = About("serves", "Other organizations that these drones also work for, by name; `*` = all.")
EXPIRES = About("expires", "Lifetime of the token in seconds.", unit="seconds", flag="--expires", input="duration")
ROLE = About("role", "admin, operator or viewer.", choices=tuple(RANKS))
NAME = About("name", "Name of the token, shown in the list, and on orders if it belongs to no user.")
OWNER = About(
    "owner", "E-mail address of the user who owns the drones that join with it.", absent="you", source="users:email"
)
USER = About(
    "user", "E-mail address of the user it belongs to.", absent="no user: it is for a script", source="users:email"
)
EVERYWHERE = About("everywhere", "Valid in every organization; with the role admin it can also create organizations.")


class JoinTokenRequest(Request):
    expires_s: Annotated[int, EXPIRES] = Field(3600, ge=1, le=30 * 24 * 3600)
    uses: Annotated[int, USES] = Field(1, ge=1, le=10_000)
    labels: Annotated[dict[str, str], LABELS] = Field(default_factory=dict)
    serves: Annotated[list[str], SERVES] = Field(default_factory=list)
    owner: Annotated[str | None, OWNER] = None


class ApiTokenRequest(Request):
    role: Annotated[str, ROLE]
    name: Annotated[str, NAME] = ""
    expires_s: Annotated[int | None, replace(EXPIRES, absent="unlimited")] = Field(None, ge=1, le=10 * 366 * 24 * 3600)
    everywhere: Annotated[bool, EVERYWHERE] = False
    user: Annotated[str | None, USER] = None
    """The token is valid while this person is a member of the organization, with at most their role."""


class RevocationDocument(Document):
    """What ended together with an API token, because it was created with it."""

    api_tokens: list[str]
    """Ids."""
    join_tokens: list[str]
    """Ids."""
    login_sessions: int
    """With those of the token itself."""
    login_links: int
    """Unused ones."""
    drones: list[str]
    """The names of drones that joined with one of its join tokens, or belong to the removed user: they stay."""


class JoinTokenDocument(Document):
    id: str
    token: str | None
    """Shown once, when it is created."""
    labels: dict[str, str]
    serves: list[str]
    """Same as on its drones."""
    owner: str | None
    """Same as on its drones."""
    uses: int
    used: int
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


class ApiTokenDocument(Document):
    id: str
    token: str | None
    """Shown once, when it is created."""
    name: str
    role: str
    everywhere: bool
    user: str | None = None
    """The e-mail address of the user it belongs to."""
    made_by: str | None = None
    """The id of the API token with which it was created."""
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    ended: RevocationDocument | None = None
    """What else ended, once it was revoked."""


class LoginLinkDocument(BaseModel):
    """A one-use URL that logs a browser in."""

    url: str
    secret: str
    """The token in the address."""


class LoginSessionDocument(Document):
    """A logged-in browser."""

    id: Annotated[str, About("id")]
    token_id: Annotated[str | None, About("token")]
    """The API token that it was started with, and ends with; null: the identity provider."""
    token_name: Annotated[str, About("name")]
    user_id: str | None
    """The user that the token belongs to."""
    user: Annotated[str | None, About("user")]
    """The user's name."""
    role: Annotated[str, About("role")]
    everywhere: bool
    current: bool
    """Whether the request itself came through it."""
    created_at: Annotated[datetime, About("started")]
    last_used_at: Annotated[datetime | None, About("last used")]
    """Accurate to a minute."""
    address: Annotated[str, About("address")]
    """The network address from which it was used then."""
    expires_at: Annotated[datetime, About("expires")]


NAMES = {"token_id": Annotated[str, About("token", "The token's id, from `ls`.", metavar="ID")]}
SESSION_NAMES = {
    "login_session_id": Annotated[str, About("login session", "The login session's id, from `ls`.", metavar="ID")]
}
SECRETS_STAY_OUT = NoDoor("a token must not pass through a model's conversation")
FOR_PEOPLE = NoDoor("only people decide who gets access")

CREATE_JOIN = Operation(
    name="create_join_token",
    role="admin",
    route="POST /join-tokens",
    status=201,
    errors=(404,),
    request=JoinTokenRequest,
    answer=JoinTokenDocument,
    summary="Create a join token for drones",
    more="`token` is shown only once.",
    tool=SECRETS_STAY_OUT,
    command=ByHand("token add", "its --serves-all stands for a list"),
)
LIST_JOIN = Operation(
    name="list_join_tokens",
    role="admin",
    route="GET /join-tokens",
    answer=list[JoinTokenDocument],
    summary="List join tokens, without their secrets",
    tool=FOR_PEOPLE,
    command=Command(
        "token ls",
        "List join tokens, without their secrets.",
        "fleet token ls",
    ),
)
REVOKE_JOIN = Operation(
    name="revoke_join_token",
    role="admin",
    route="DELETE /join-tokens/{token_id}",
    names=NAMES,
    errors=(404,),
    answer=JoinTokenDocument,
    summary="Revoke a join token",
    tool=FOR_PEOPLE,
    command=Command(
        "token revoke",
        "Revoke a join token; drones that joined with it stay registered.",
        "fleet token revoke ID",
        done="join token {token_id} revoked",
    ),
)
CREATE_API = Operation(
    name="create_api_token",
    role="admin",
    route="POST /api-tokens",
    status=201,
    request=ApiTokenRequest,
    answer=ApiTokenDocument,
    summary="Create an API token for a user or a script",
    more="`token` is shown only once.",
    tool=SECRETS_STAY_OUT,
    command=ByHand("api-token add", "its --bootstrap writes to the database, and it prints only the token"),
)
LIST_API = Operation(
    name="list_api_tokens",
    role="admin",
    route="GET /api-tokens",
    answer=list[ApiTokenDocument],
    summary="List API tokens, without their secrets",
    tool=FOR_PEOPLE,
    command=Command(
        "api-token ls",
        "List API tokens, without their secrets.",
        "fleet api-token ls",
    ),
)
REVOKE_API = Operation(
    name="revoke_api_token",
    role="admin",
    route="DELETE /api-tokens/{token_id}",
    names=NAMES,
    errors=(404, 409),
    answer=ApiTokenDocument,
    summary="Revoke an API token and everything that was derived from it",
    more="That is: API tokens, join tokens, login links and browser sessions. Drones that joined stay.",
    tool=FOR_PEOPLE,
    command=Command(
        "api-token revoke",
        "Revoke an API token, with all tokens and logins created with it; they stop working at once.",
        "fleet api-token revoke ID",
    ),
)
CREATE_LOGIN_LINK = Operation(
    name="create_login_link",
    role="viewer",
    route="POST /login-links",
    status=201,
    errors=(403,),
    answer=LoginLinkDocument,
    summary="Create a one-time login link for a browser",
    more="The browser session has the caller's role and organization.",
    tool=SECRETS_STAY_OUT,
    command=ByHand("login-link", "it prints the link alone, and belongs to no group"),
)
LIST_LOGIN_SESSIONS = Operation(
    name="list_login_sessions",
    role="viewer",
    route="GET /login-sessions",
    answer=list[LoginSessionDocument],
    summary="List the browsers that are logged in",
    more="Those of the caller's own token, and of their user in the organization; for an admin, all of it. "
    "Callers who may act everywhere, or logged in with the identity provider, see their user's elsewhere, too.",
    tool=FOR_PEOPLE,
    command=Command(
        "login-session ls",
        "List logged-in browsers: your own; for an admin, all of the organization.",
        "fleet login-session ls",
        columns=("id", "token_id", "token_name", "user", "role", "created_at", "last_used_at", "address", "expires_at"),
        empty="no browser is logged in",
    ),
)
END_LOGIN_SESSION = Operation(
    name="end_login_session",
    role="viewer",
    route="DELETE /login-sessions/{login_session_id}",
    names=SESSION_NAMES,
    errors=(403, 404),
    answer=LoginSessionDocument,
    summary="Log out a browser",
    more="One of the caller's own token or user; for an admin, any of the organization.",
    tool=FOR_PEOPLE,
    command=Command(
        "login-session rm",
        "Log out a browser; to end all sessions of a token, revoke the token.",
        "fleet login-session rm ID",
        done="login session {login_session_id} ended",
    ),
)
