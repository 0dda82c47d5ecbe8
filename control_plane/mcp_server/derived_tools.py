"""The MCP tools of the declared operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, cast

from pydantic import Field, create_model

from control_plane.core import Caller, Core
from control_plane.declarations import operation as declared
from control_plane.declarations.operation import Operation, every_operation
from control_plane.mcp_server.tools import InOrganization, McpToolArguments, ServedTool, request_of
from control_plane.operations.gateway import OperationCall, perform

KEY = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=255,
        description="Any unique text. For 7 days, a repeated call with the same key and arguments returns the first "
        "call's answer instead of acting again: send a key if you may have to repeat the call. Default: none.",
    ),
]


def tools() -> Iterator[ServedTool[Any]]:
    """A tool for each operation that has one, except the hand-written ones."""
    for operation in every_operation():
        if isinstance(operation.tool, declared.Tool):
            yield derive(operation, operation.tool)


def derive(operation: Operation, tool: declared.Tool) -> ServedTool[Any]:
    """The tool of one operation: its arguments are the names in the path, the request's fields, the organization."""
    return ServedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        effect=tool.effect,
        arguments=_arguments(operation, tool),
        answers=operation.answer,
        run=_run(operation, tool),
    )


def _arguments(operation: Operation, tool: declared.Tool) -> type[McpToolArguments]:
    bases: Any = (InOrganization if operation.in_organization else McpToolArguments, *filter(None, [operation.request]))
    own: dict[str, Any] = {name: (annotation, ...) for name, annotation in operation.names.items()}
    for name, default in tool.defaults.items():
        own[name] = (declared.annotated(bases[-1].model_fields[name]), default)
    if operation.idempotent:
        own["idempotency_key"] = (KEY, None)
    made: Any = create_model(operation.name, __base__=bases, **own)
    setattr(made, "about", tool.about)  # noqa: B010 - a class variable, which create_model cannot set
    return cast("type[McpToolArguments]", made)


def _run(operation: Operation, tool: declared.Tool) -> Callable[[Core, Caller, Any], Any]:
    def run(core: Core, caller: Caller, arguments: Any) -> Any:
        names = {name: getattr(arguments, name) for name in operation.names}
        request = request_of(operation.request, arguments, tool.defaults) if operation.request else None
        return perform(
            core, caller, OperationCall(operation, names, request, getattr(arguments, "idempotency_key", None))
        )

    return run
