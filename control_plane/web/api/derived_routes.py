"""The HTTP routes of the declared operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import Any

from fastapi import APIRouter, Body, Header, Path, Query, Request
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from control_plane.contract.declarations.operation import Operation, annotated, fields_of, names_of, operations_of
from control_plane.operations.gateway import OperationCall, enter, perform
from control_plane.web.access import api_router
from control_plane.web.openapi import errors

OWN = "organization"
"""A path may contain the organization; `?org=` is then ignored."""
ORGANIZATION = "Organization (default: the token's own)."
KEY = "The same key with the same body returns the same order for 7 days; with another body: 409."


def router(noun: str) -> APIRouter:
    """The routes of a noun's operations, in the order of their declarations."""
    routes = api_router(noun)
    for operation in operations_of(noun):
        if not operation.route_by_hand:
            add_route(routes, operation)
    return routes


def add_route(routes: APIRouter, operation: Operation) -> None:
    """Add the route of one operation."""
    unknown = [404] if operation.in_organization or f"{{{OWN}}}" in operation.path else []
    routes.add_api_route(
        _path(operation),
        _endpoint(operation),
        methods=[operation.method],
        status_code=operation.status,
        summary=operation.summary,
        responses=errors(401, 403, *unknown, *operation.errors),
        response_model=operation.answer,
    )


def _path(operation: Operation) -> str:
    """The path as FastAPI's: a name with slashes takes the rest of it."""
    path = operation.path
    for name, _, about in names_of(operation):
        path = path.replace(f"{{{name}}}", f"{{{name}:path}}") if about.slashes else path
    return path


def _endpoint(operation: Operation) -> Callable[..., Any]:
    filters = operation.request if operation.takes_filters else None

    def endpoint(http: Request, **given: Any) -> Any:
        core = http.app.state.core
        caller = enter(core, http.state.identity, given.get(OWN, given.get("org")))
        request = filters(**{name: given[name] for name in filters.model_fields}) if filters else given.get("body")
        names = {name: given[name] for name in operation.names}
        return perform(core, caller, OperationCall(operation, names, request, given.get("idempotency_key")))

    endpoint.__name__ = operation.name
    endpoint.__doc__ = operation.more
    parameters = [Parameter("http", Parameter.KEYWORD_ONLY, annotation=Request), *_parameters(operation)]
    endpoint.__dict__["__signature__"] = Signature(parameters)
    return endpoint


def _parameters(operation: Operation) -> Iterator[Parameter]:
    """What FastAPI reads from the request: names, organization, filters or body, idempotency key."""
    for name, info, about in names_of(operation):
        yield _parameter(name, info, Path(description=about.help or None))
    if f"{{{OWN}}}" in operation.path:
        yield _parameter(OWN, _info(str), Path(description="The organization's name.", max_length=64))
    elif operation.in_organization:
        yield _parameter("org", _info(str | None), Query(description=ORGANIZATION, max_length=64), None)
    if operation.request is not None and operation.takes_filters:
        yield from _filters(operation.request)
    elif operation.request is not None:
        kind = operation.request | None if operation.body_optional else operation.request
        yield _parameter("body", _info(kind), Body(), *([None] if operation.body_optional else []))
    if operation.idempotent:
        place = Header(min_length=1, max_length=255, description=KEY)
        yield _parameter("idempotency_key", _info(str | None), place, None)


def _filters(request: type[BaseModel]) -> Iterator[Parameter]:
    for name, info, about in fields_of(request):
        place = Query(description=about.help or None, alias=info.alias)
        yield _parameter(name, info, place, info.get_default(call_default_factory=True))


def filters_of(request: type[BaseModel]) -> Callable[..., dict[str, Any]]:
    """A dependency for handwritten routes: the filters from the query, as derived routes read them."""

    def given(**filters: Any) -> dict[str, Any]:
        return filters

    given.__dict__["__signature__"] = Signature([*_filters(request)])
    return given


def _info(annotation: Any) -> FieldInfo:
    return FieldInfo.from_annotation(annotation)


def _parameter(name: str, info: FieldInfo, place: Any, *default: Any) -> Parameter:
    fallback = default[0] if default else Parameter.empty
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotated(info, place), default=fallback)
