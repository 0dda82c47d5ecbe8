"""Tokens that are handed out: to drones that join, to people and scripts, to browsers."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from control_plane.documents.tokens import ApiTokenDocument, ApiTokenRequest, JoinTokenDocument, JoinTokenRequest
from control_plane.operations.access import tokens
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(tags=["tokens"])


class LoginLink(BaseModel):
    """The way into the pages, once."""

    url: str
    secret: str
    """The token in the address."""


@router.post("/join-tokens", status_code=201, summary="A token that lets drones join", responses=errors(401, 403))
def create_join_token(core: CoreDep, caller: CallerDep, request: JoinTokenRequest) -> JoinTokenDocument:
    """`token` is shown this once."""
    return tokens.create_join_token(core, caller, request)


@router.get("/join-tokens", summary="All join tokens, without their secrets", responses=errors(401, 403))
def list_join_tokens(core: CoreDep, caller: CallerDep) -> list[JoinTokenDocument]:
    return tokens.list_join_tokens(core, caller)


@router.delete("/join-tokens/{token_id}", summary="Revoke a join token", responses=errors(401, 403, 404))
def revoke_join_token(core: CoreDep, caller: CallerDep, token_id: str) -> JoinTokenDocument:
    return tokens.revoke_join_token(core, caller, token_id)


@router.post("/api-tokens", status_code=201, summary="A token for a person or a script", responses=errors(401, 403))
def create_api_token(core: CoreDep, caller: CallerDep, request: ApiTokenRequest) -> ApiTokenDocument:
    """`token` is shown this once."""
    return tokens.create_api_token(core, caller, request)


@router.get("/api-tokens", summary="All API tokens, without their secrets", responses=errors(401, 403))
def list_api_tokens(core: CoreDep, caller: CallerDep) -> list[ApiTokenDocument]:
    return tokens.list_api_tokens(core, caller)


@router.delete("/api-tokens/{token_id}", summary="Revoke an API token", responses=errors(401, 403, 404))
def revoke_api_token(core: CoreDep, caller: CallerDep, token_id: str) -> ApiTokenDocument:
    return tokens.revoke_api_token(core, caller, token_id)


@router.post("/login-links", status_code=201, summary="An address that logs one browser in", responses=errors(401, 403))
def create_login_link(core: CoreDep, caller: CallerDep) -> LoginLink:
    """The browser gets the caller's own role and organization."""
    secret = tokens.create_login_link(core, caller)
    return LoginLink(url=f"{core.settings.url}/login?token={secret}", secret=secret)
