"""Logging a browser in and out: by an API token that is pasted, or by a one-use address."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from control_plane.core import Core
from control_plane.operations.access import tokens
from control_plane.operations.access.logins import SESSION_LASTS
from control_plane.web.access import CoreDep, cookie_name, session_secret
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page
from control_plane.web.throttle import throttled
from shared.errors import Invalid, Refused

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login_page(
    token: Annotated[str, Query(max_length=200)] = "", next: Annotated[str, Query(max_length=1000)] = "/"
) -> Response:
    """The form. This GET does not use a one-use token in the address: programs that preview links would burn it.

    The page sends it automatically, by a POST; without scripts, a button does so.
    """
    return _form(link=token, next_page=next)


@router.post("/login", dependencies=[Depends(throttled("log-in"))])
def login(
    core: CoreDep,
    request: Request,
    token: Annotated[str, Form(max_length=200)] = "",
    link: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=1000)] = "/",
) -> Response:
    """Start a session and go to `next`; if refused, show the form again with the reason."""
    try:
        secret = _session(core, token.strip(), link.strip())
    except Refused as error:
        problem = problem_of(request.scope, error)
        return _form(link="", next_page=next, problem=problem.model_dump(), status=problem.status)
    response = RedirectResponse(local_page(next), 303)
    response.set_cookie(
        cookie_name(core),
        secret,
        max_age=int(SESSION_LASTS.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=_is_https(core, request),
    )
    return response


@router.post("/logout")
def logout(core: CoreDep, request: Request) -> Response:
    """End the session here and in the database."""
    if secret := session_secret(request.headers, core):
        tokens.end_session(core, secret)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(cookie_name(core), httponly=True, samesite="lax", secure=_is_https(core, request))
    return response


def local_page(address: str) -> str:
    """`address` if it is a page of ours, else the board: a log-in must not lead to another site."""
    parts = urlsplit(address)
    harmless = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if harmless and not parts.scheme and not parts.netloc else "/"


def _session(core: Core, token: str, link: str) -> str:
    if link:
        return tokens.use_login_link(core, link)[0]
    if not token:
        raise Invalid("a token is required", code="E-TOKEN-MISSING", next="fleet api-token create --role operator")
    return tokens.start_session(core, tokens.authenticate(core, token))


def _is_https(core: Core, request: Request) -> bool:
    # Behind a proxy that ends TLS, the request itself arrives over http: then the public address decides.
    return request.url.scheme == "https" or core.settings.url.startswith("https://")


def _form(*, link: str, next_page: str, problem: dict[str, object] | None = None, status: int = 200) -> Response:
    context = {"link": link, "next": local_page(next_page), "problem": problem, "caller": None}
    return page("login.html", context, status)
