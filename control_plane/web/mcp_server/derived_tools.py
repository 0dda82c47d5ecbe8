"""The MCP tools of the declared operations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, cast

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from control_plane.contract.declarations import operation as declared
from control_plane.contract.declarations.operation import About, Operation, every_operation
from control_plane.core import Caller, Core
from control_plane.operations.gateway import OperationCall, perform
from control_plane.web.mcp_server.tools import InOrganization, McpToolArguments, ServedTool, request_of

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
    about = {**descriptions(operation, tool.defaults), **tool.about}
    setattr(made, "about", about)  # noqa: B010 - a class variable, which create_model cannot set
    return cast("type[McpToolArguments]", made)


def descriptions(operation: Operation, defaults: Mapping[str, Any] = MappingProxyType({})) -> dict[str, str]:
    """What a model reads of each argument: the sentence for people, the tool that lists its values, its default."""
    named = {name: _with_list(about, operation) for name, _, about in declared.names_of(operation)}
    fields = declared.fields_of(operation.request) if operation.request else ()
    return named | {
        info.alias or name: f"{_with_list(about, operation)}{_absent(operation, info, about, defaults.get(name))}"
        for name, info, about in fields
        if about.help
    }


def _with_list(about: About, operation: Operation) -> str:
    noun = about.source.partition(":")[0]
    found = vars(import_module(f"control_plane.contract.declarations.{noun}")).get("LIST") if noun else None
    tool = found.tool if found is not None and found is not operation else None
    return f"{about.help} {tool.name} has them." if isinstance(tool, declared.Tool | declared.ByHand) else about.help


def _absent(operation: Operation, info: FieldInfo, about: About, default: Any) -> str:
    """What no value means; of a change, which leaves what is not given, what null means."""
    if operation.method == "PATCH":
        removable = about.none and about.absent and not about.none.startswith("--")
        return f" null: {about.absent}." if removable else ""
    if info.is_required():
        return ""
    value = info.get_default(call_default_factory=True) if default is None else default
    said = about.absent or ("none" if value in (None, "", [], {}) else json.dumps(value))
    return f" Default: {said.strip(chr(34))}."


def _run(operation: Operation, tool: declared.Tool) -> Callable[[Core, Caller, Any], Any]:
    def run(core: Core, caller: Caller, arguments: Any) -> Any:
        names = {name: getattr(arguments, name) for name in operation.names}
        request = request_of(operation.request, arguments, tool.defaults) if operation.request else None
        return perform(
            core, caller, OperationCall(operation, names, request, getattr(arguments, "idempotency_key", None))
        )

    return run
