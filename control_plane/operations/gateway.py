"""The single entry point to all operations, for every interface: permissions, organization, idempotency key, audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Concatenate, ParamSpec, TypeVar

from control_plane import operations
from control_plane.contract.declarations.operation import Operation
from control_plane.contract.documents.base import Request
from control_plane.core import Caller, Core
from control_plane.core.audit_entries import entry_of
from control_plane.core.lookups import ids
from control_plane.core.lookups.organizations import in_organization
from control_plane.operations.access.roles import may, require, require_everywhere
from control_plane.operations.auditing import audited
from shared.errors import Forbidden

_PERFORMERS: dict[str, Callable[..., Any]] = {}
"""The functions with `@performs`, by the operation's name."""
NAMING = ("slug", "name")
"""Fields of a request that name what it creates."""
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class OperationCall:
    """One call of an operation, parsed by an interface (HTTP, MCP, a page)."""

    operation: Operation
    names: Mapping[str, Any]
    """The path parameters."""
    request: Request | None = None
    idempotency_key: str | None = None


def perform(core: Core, caller: Caller, call: OperationCall) -> Any:
    """Run the operation and return its answer. Raises the operation's refusals.

    The function receives the path parameters in order, then the request. The filters of a GET or DELETE are passed as
    keyword arguments.
    """
    operation = call.operation
    values = [call.names[name] for name in operation.names]
    named = {"idempotency_key": call.idempotency_key} if operation.idempotent else {}
    if operation.request is not None:
        request = call.request or operation.request()
        if operation.takes_filters:
            named |= dict(request)
        else:
            values.append(request)
    return implementation(operation)(core, caller, *values, **named)


def enter(core: Core, identity: object, organization: str | None) -> Caller:
    """The caller, with their role in the named organization.

    Raises Forbidden for a drone, NotFound for an organization that the caller may not see.
    """
    if not isinstance(identity, Caller):
        raise Forbidden("this address is for users; the token belongs to a drone", code="E-TOKEN-KIND")
    return identity if organization is None else in_organization(core, identity, organization)


def performs(
    operation: Operation,
) -> Callable[[Callable[Concatenate[Core, Caller, P], R]], Callable[Concatenate[Core, Caller, P], R]]:
    """Declare which operation a function implements.

    It then checks permissions and writes the audit log, even if a page calls it directly.
    """

    def guard(run: Callable[Concatenate[Core, Caller, P], R]) -> Callable[Concatenate[Core, Caller, P], R]:
        @wraps(run)
        def guarded(core: Core, caller: Caller, /, *values: P.args, **named: P.kwargs) -> R:
            entry = entry_of(core, caller, operation.name, _target(operation, values))
            reads = operation.method == "GET"
            with audited(core, entry, reads=reads) if operation.in_audit_log else nullcontext():
                permit(operation, caller)
                return run(core, caller, *_with_full_ids(core, caller, operation, values), **named)

        guarded.__dict__["operation"] = operation
        _PERFORMERS[operation.name] = guarded
        return guarded

    return guard


def permit(operation: Operation, caller: Caller) -> None:
    """Check that the caller may run the operation. Raises Forbidden."""
    require(caller, operation.role)
    if operation.everywhere:
        require_everywhere(caller)


def permitted(operation: Operation, caller: Caller) -> bool:
    """Whether the caller may run the operation; for pages that leave out what the caller may not see."""
    return may(caller, operation.role) and (caller.everywhere or not operation.everywhere)


def if_permitted(core: Core, caller: Caller, run: Callable[[Core, Caller], R]) -> R | None:
    """What this operation answers; None for a caller who may not run it.

    It is not called then, because the audit log would show a refusal of what the caller did not ask for.
    """
    return run(core, caller) if permitted(run.__dict__["operation"], caller) else None


def _target(operation: Operation, values: tuple[Any, ...]) -> str:
    """What the operation concerns, for the audit log: the names in its path, else the name in its request."""
    names = [str(value) for value in values[: len(operation.names)]]
    request = values[len(names)] if len(values) > len(names) else None
    named = (getattr(request, field, None) for field in NAMING)
    return " ".join(names) or next((name for name in named if isinstance(name, str)), "")


def _with_full_ids(core: Core, caller: Caller, operation: Operation, values: Any) -> Any:
    """The values of a call, with the full ids of the orders and sessions in its path."""
    short = [n for n, name in enumerate(operation.names) if name in ids.FULL and ids.needs_lookup(str(values[n]))]
    if not short:
        return values
    with core.database.read() as db:
        full = {n: ids.FULL[name](db, caller, values[n]) for n, name in enumerate(operation.names) if n in short}
    return tuple(full.get(n, value) for n, value in enumerate(values))


def implementation(operation: Operation) -> Callable[..., Any]:
    """The function that performs an operation. The modules of operations are imported if it is not known yet."""
    if operation.name not in _PERFORMERS:
        for each in walk_packages(operations.__path__, f"{operations.__name__}."):
            import_module(each.name)
    return _PERFORMERS[operation.name]
