"""Tokens that are issued to drones that join, to people and scripts, and to browsers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from control_plane.declarations.operation import About, ByHand, Command, NoDoor, Operation
from control_plane.documents.base import Document, Request

USES = About("uses", "How many drones may join with it.")
LABELS = About("labels", "k=v fixed on those drones.", flag="--label")
SERVES = About("serves", "Organizations that its drones work for beside their own, by name; `*`: all.")
EXPIRES = About("expires", "How long it can be used.", unit="seconds")
ROLE = About("role", "admin, operator or viewer.")
NAME = About("name", "Whose it is, for the list.")
EVERYWHERE = About("everywhere", "It may act in every organization; with the role admin make new ones.")


class JoinTokenRequest(Request):
    expires_s: Annotated[int, EXPIRES] = Field(3600, ge=1, le=30 * 24 * 3600)
    uses: Annotated[int, USES] = Field(1, ge=1, le=10_000)
    labels: Annotated[dict[str, str], LABELS] = Field(default_factory=dict)
    serves: Annotated[list[str], SERVES] = Field(default_factory=list)


class ApiTokenRequest(Request):
    role: Annotated[str, ROLE]
    name: Annotated[str, NAME] = ""
    expires_s: Annotated[int | None, EXPIRES] = Field(None, ge=1, le=10 * 366 * 24 * 3600)
    everywhere: Annotated[bool, EVERYWHERE] = False


class JoinTokenDocument(Document):
    id: str
    token: str | None
    """Shown once, when it is created."""
    labels: dict[str, str]
    serves: list[str]
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
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None


class LoginLinkDocument(BaseModel):
    """A one-use URL that logs a browser in."""

    url: str
    secret: str
    """The token in the address."""


NAMES = {"token_id": Annotated[str, About("token", "The token's id, from `ls`.", metavar="ID")]}
SECRETS_STAY_OUT = NoDoor("a token must not pass through a model's conversation")
FOR_PEOPLE = NoDoor("who may enter is decided by a person")

CREATE_JOIN = Operation(
    name="create_join_token",
    role="admin",
    route="POST /join-tokens",
    status=201,
    run="access.tokens:create_join_token",
    request=JoinTokenRequest,
    answer=JoinTokenDocument,
    summary="A token that lets drones join",
    more="`token` is shown this once.",
    tool=SECRETS_STAY_OUT,
    command=ByHand("token add", "it takes 1h for 3600 and prints the token alone"),
)
LIST_JOIN = Operation(
    name="list_join_tokens",
    role="admin",
    route="GET /join-tokens",
    run="access.tokens:list_join_tokens",
    answer=list[JoinTokenDocument],
    summary="All join tokens, without their secrets",
    tool=FOR_PEOPLE,
    command=Command(
        "token ls",
        "List join tokens; the secrets themselves are not kept.",
        "fleet token ls",
        text="token_text:print_join_tokens",
    ),
)
REVOKE_JOIN = Operation(
    name="revoke_join_token",
    role="admin",
    route="DELETE /join-tokens/{token_id}",
    names=NAMES,
    errors=(404,),
    run="access.tokens:revoke_join_token",
    answer=JoinTokenDocument,
    summary="Revoke a join token",
    tool=FOR_PEOPLE,
    command=Command(
        "token revoke",
        "Make a join token useless; drones that joined with it stay.",
        "fleet token revoke ID",
        done="join token {token_id} is revoked",
    ),
)
CREATE_API = Operation(
    name="create_api_token",
    role="admin",
    route="POST /api-tokens",
    status=201,
    run="access.tokens:create_api_token",
    request=ApiTokenRequest,
    answer=ApiTokenDocument,
    summary="A token for a person or a script",
    more="`token` is shown this once.",
    tool=SECRETS_STAY_OUT,
    command=ByHand("api-token add", "its --bootstrap writes to the database, and it prints the token alone"),
)
LIST_API = Operation(
    name="list_api_tokens",
    role="admin",
    route="GET /api-tokens",
    run="access.tokens:list_api_tokens",
    answer=list[ApiTokenDocument],
    summary="All API tokens, without their secrets",
    tool=FOR_PEOPLE,
    command=Command(
        "api-token ls",
        "List API tokens; the secrets themselves are not kept.",
        "fleet api-token ls",
        text="token_text:print_api_tokens",
    ),
)
REVOKE_API = Operation(
    name="revoke_api_token",
    role="admin",
    route="DELETE /api-tokens/{token_id}",
    names=NAMES,
    errors=(404,),
    run="access.tokens:revoke_api_token",
    answer=ApiTokenDocument,
    summary="Revoke an API token",
    tool=FOR_PEOPLE,
    command=Command(
        "api-token revoke",
        "Make an API token useless at once.",
        "fleet api-token revoke ID",
        done="API token {token_id} is revoked",
    ),
)
CREATE_LOGIN_LINK = Operation(
    name="create_login_link",
    role="viewer",
    route="POST /login-links",
    status=201,
    errors=(403,),
    run="access.tokens:login_link",
    answer=LoginLinkDocument,
    summary="An address that logs one browser in",
    more="The browser gets the caller's own role and organization.",
    tool=SECRETS_STAY_OUT,
    command=NoDoor("`fleet up` prints one"),
)
