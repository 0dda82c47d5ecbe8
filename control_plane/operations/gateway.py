"""The one way to an operation, whichever door a call came through: who may, in which organization, once per key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, TypeVar

from control_plane.core import Caller, Core
from control_plane.declarations.operation import Operation
from control_plane.documents.base import Request
from control_plane.lookups.organizations import in_organization
from control_plane.operations.access.roles import require, require_everywhere
from shared.errors import Forbidden

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class OperationCall:
    """One call of an operation, as a door (HTTP, MCP, a page) has parsed it."""

    operation: Operation
    names: Mapping[str, Any]
    """The values of the path."""
    request: Request | None = None
    idempotency_key: str | None = None


def perform(core: Core, caller: Caller, call: OperationCall) -> Any:
    """Carry the operation out and return its answer. Raises what the operation refuses with.

    The function takes the names of the path in their order, then the request; filters by keyword.
    """
    operation = call.operation
    values = [call.names[name] for name in operation.names]
    named = {"idempotency_key": call.idempotency_key} if operation.idempotent else {}
    if operation.request is not None:
        request = call.request or operation.request()
        if operation.method == "GET":
            named |= dict(request)
        else:
            values.append(request)
    return implementation(operation)(core, caller, *values, **named)


def enter(core: Core, identity: object, organization: str | None) -> Caller:
    """Who calls, as they are in the organization that they named.

    Raises Forbidden for a drone, NotFound for an organization that they may not see.
    """
    if not isinstance(identity, Caller):
        raise Forbidden("this address is for people; the token is a drone's", code="E-TOKEN-KIND")
    return identity if organization is None else in_organization(core, identity, organization)


def performs(
    operation: Operation,
) -> Callable[[Callable[Concatenate[Core, Caller, P], R]], Callable[Concatenate[Core, Caller, P], R]]:
    """Say which operation a function carries out. It then refuses who may not, also where pages call it directly."""

    def guard(run: Callable[Concatenate[Core, Caller, P], R]) -> Callable[Concatenate[Core, Caller, P], R]:
        @wraps(run)
        def guarded(core: Core, caller: Caller, /, *values: P.args, **named: P.kwargs) -> R:
            permit(operation, caller)
            return run(core, caller, *values, **named)

        guarded.__dict__["operation"] = operation
        return guarded

    return guard


def permit(operation: Operation, caller: Caller) -> None:
    """Return if the caller may have the operation carried out. Raises Forbidden."""
    require(caller, operation.role)
    if operation.everywhere:
        require_everywhere(caller)


def implementation(operation: Operation) -> Callable[..., Any]:
    """The function that carries an operation out; it is looked up only when it is called."""
    module, _, name = operation.run.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"control_plane.operations.{module}"), name)
    return found
