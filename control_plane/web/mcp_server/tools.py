"""What a tool is: a thin function over an operation, its arguments as a request model, and its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, cast, get_type_hints

from mcp_types import Tool as ListedTool
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from control_plane.contract.declarations.operation import Effect
from control_plane.contract.documents.base import Request
from control_plane.core import Caller, Core

Schema = dict[str, Any]
RESULT = "result"
"""The key of a list: up to MCP 2025-11-25 the answer of a tool is an object."""


class McpToolArguments(Request):
    """The arguments of a tool; an unknown one is refused."""

    about: ClassVar[Mapping[str, str]] = {}
    """Descriptions for the client, for the fields that come from a request model."""


class InOrganization(McpToolArguments):
    """Arguments of a tool that acts in one organization."""

    organization: str | None = Field(
        None,
        max_length=64,
        description=(
            "Name of the organization to act in; list_organizations has the names. Default: the connection's "
            "organization, or else the API token's. Only needed with a token that may act everywhere."
        ),
    )


A = TypeVar("A", bound=McpToolArguments)
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True)
class ServedTool(Generic[A]):
    """One tool of the MCP server."""

    name: str
    title: str
    description: str
    effect: Effect
    arguments: type[A]
    answers: Any
    """The document that it returns, or a list of them."""
    run: Callable[[Core, Caller, A], Any]

    @cached_property
    def listed(self) -> ListedTool:
        """The tool as `tools/list` shows it."""
        return ListedTool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema(self.arguments),
            output_schema=output_schema(self.answers),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=self.effect.reads,
                destructive_hint=self.effect.destroys,
                idempotent_hint=self.effect.repeatable,
                open_world_hint=self.effect.begins_work,
            ),
        )


class ServedTools(dict[str, ServedTool[Any]]):
    """Tools by name, in the order in which they were declared."""

    def declare(self, title: str, effect: Effect) -> Callable[[F], F]:
        """Make a tool of a function `(core, caller, arguments)`, or of one that needs only the organization.

        Its name is the function's name, its description the docstring, its arguments and answer the annotated types.
        """

        def add(run: F) -> F:
            types = get_type_hints(run)
            description = " ".join((run.__doc__ or "").split())
            if "arguments" in types:
                arguments, call = types["arguments"], cast("Callable[..., Any]", run)
            else:
                arguments, call = InOrganization, partial(_without_arguments, run)
            self[run.__name__] = ServedTool(run.__name__, title, description, effect, arguments, types["return"], call)
            return run

        return add


def _without_arguments(run: Callable[[Core, Caller], Any], core: Core, caller: Caller, _: McpToolArguments) -> Any:
    return run(core, caller)


def request_of(kind: type[R], arguments: McpToolArguments, defaults: Mapping[str, Any] = MappingProxyType({})) -> R:
    """The operation's own request with the given fields; the others keep their defaults, or take these."""
    given = arguments.model_dump(include=set(kind.model_fields), exclude_unset=True)
    return kind.model_validate({**defaults, **given})


# --- schemas -------------------------------------------------------------------------


class _Plain(GenerateJsonSchema):
    """Without field titles, which would only repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def input_schema(arguments: type[McpToolArguments]) -> Schema:
    """The JSON schema of a tool's arguments, with a description for each."""
    schema = arguments.model_json_schema(schema_generator=_Plain)
    for name in ("title", "description"):
        schema.pop(name, None)
    schema.setdefault("properties", {})
    for field, text in arguments.about.items():
        schema["properties"][field]["description"] = text
    return schema


def output_schema(answers: Any) -> Schema:
    """The JSON schema of a tool's answer: a document, or an object with a list of them."""
    schema = TypeAdapter(answers).json_schema(mode="serialization", schema_generator=_Plain)
    if schema.get("type") != "array":
        return schema
    definitions = schema.pop("$defs", None)
    wrapped: Schema = {"type": "object", "properties": {RESULT: schema}, "required": [RESULT]}
    return wrapped if definitions is None else {**wrapped, "$defs": definitions}
