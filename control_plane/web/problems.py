"""Every refusal and failure as one document (RFC 9457) with code, why and next; for a browser, as a page."""

from __future__ import annotations

import errno
import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from control_plane.contract.validation.invalid_requests import FieldProblem, InvalidRequest, field_problem
from control_plane.contract.validation.stale_writes import StaleWrite
from control_plane.core.origin import current_origin
from control_plane.web.rendering import error_page
from shared.errors import FleetError, FleetFault, TooOften
from shared.names import new_id
from shared.terminal import logs

log = logs.get(__name__)
MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """An RFC 9457 problem, extended with a stable code, the cause and the next action."""

    type: str
    title: str
    status: int
    detail: str
    """One sentence: what went wrong."""
    instance: str
    code: str
    why: str | None
    next: str | None
    """A command to paste."""
    help: str
    fields: list[FieldProblem] = Field(default_factory=list)
    stored: dict[str, Any] | None = None
    """Of a change that was based on an outdated version: the document as it is now."""


class Throttled(TooOften):
    """Too many attempts from one address."""

    def __init__(self, what: str, retry_after_s: int) -> None:
        super().__init__(what, code="E-TOO-OFTEN", next=f"try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class Boundary:
    """The outermost layer except the headers: exceptions raised below become problem documents or error pages.

    An error after the answer began can only end the connection, so that no reader takes a partial answer for a complete
    one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def watched(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            # The client disconnected while sending its request: there is no recipient for an answer.
            return
        except FleetError as error:
            if began:
                raise
            await respond(scope, error)(scope, receive, send)
        except Exception as error:  # the boundary of a request: a person gets a sentence and a number, the log the rest
            unexpected = public_error(scope, error)
            if began:
                raise
            await respond(scope, unexpected)(scope, receive, send)


def install(app: FastAPI) -> None:
    """Give the framework's own refusals (404, 405, 422) the same form as ours."""
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(RequestValidationError, _validation_error)


def respond(scope: Scope, error: FleetError, status: int | None = None) -> Response:
    """The answer for `error`: a page for a browser that asked for one, else the problem document."""
    problem = problem_of(scope, error, status)
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, Throttled):
        headers["Retry-After"] = str(error.retry_after_s)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="dronefleet"'
    if wants_page(scope):
        return error_page(problem.model_dump(), headers)
    # ASCII: a refusal may repeat an unpaired surrogate of the request, which UTF-8 cannot encode.
    return Response(json.dumps(problem.model_dump()), problem.status, headers, media_type=MEDIA_TYPE)


def public_error(scope: Scope, error: Exception) -> FleetError:
    """The error as the client sees it: unchanged if it is the fleet's own, else only a number to look up in the log."""
    if isinstance(error, FleetError):
        return error
    return _full_disk(error) or _unexpected(scope, error)


def problem_of(scope: Scope, error: FleetError, status: int | None = None) -> Problem:
    """The document for `error` at the address of `scope`; a refusal also goes to the audit log."""
    status = status or error.http_status
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        current_origin().refused_with = error.code
    return Problem(
        type=f"urn:dronefleet:error:{error.code.lower()}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=error.what,
        instance=scope["path"],
        code=error.code,
        why=error.why or None,
        next=error.next or None,
        help=error.help,
        fields=error.fields if isinstance(error, InvalidRequest) else [],
        stored=error.stored if isinstance(error, StaleWrite) else None,
    )


def wants_page(scope: Scope) -> bool:
    """Whether a browser navigates here; scripts and the pages' own fetches get JSON."""
    if scope["path"].startswith(("/api/", "/openapi.json")):
        return False
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accept


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    path = request.scope["path"]
    sentences = {
        404: f"no resource at {path}",
        405: f"{request.method} is not supported at {path}",
        400: "the request could not be read",
    }
    public_error = FleetError(
        sentences.get(error.status_code, f"{phrase.lower()}: {error.detail}"),
        code=f"E-HTTP-{error.status_code}",
        next="see /openapi.json for the available addresses",
    )
    response = respond(request.scope, public_error, error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return respond(request.scope, InvalidRequest([field_problem(each) for each in error.errors()]))


def _full_disk(error: Exception) -> FleetFault | None:
    """The error for a full disk, wherever a request met it: not the request's fault, and over once there is space."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    log.error("the disk is full", why=str(error))
    return FleetFault(
        "the control plane's disk is full",
        code="E-SERVER-DISK",
        why=str(error),
        next="free disk space there, then: fleet doctor",
    )


def _unexpected(scope: Scope, error: Exception) -> FleetError:
    error_id = new_id()
    log.error("unexpected error", number=error_id, method=scope["method"], path=scope["path"], exc_info=error)
    return FleetError(
        f"unexpected error in the control plane; error number {error_id}",
        code="E-UNEXPECTED",
        why="the control plane's log contains the details under this number",
        next="fleet doctor",
    )
