"""The tools of a server that are offered to the model, and their names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drone.agent.values import ToolSpec
from drone.mcp_servers.config import ServerConfig
from shared.redaction import shortened

if TYPE_CHECKING:
    from mcp_types import Tool

MOST_TOOLS = 128
"""Maximum number of tools of one server."""
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 2_000
LARGEST_SCHEMA = 32_000
"""Bytes, as JSON."""
_SAID = 60
_VALUES = frozenset({"default", "enum", "const", "examples"})
"""Keywords whose content is no schema."""


@dataclass(frozen=True)
class Listed:
    """A tool of a server: its name there, and its description for the model."""

    tool: str
    spec: ToolSpec
    read_only: bool


class Names:
    """Assigns unique names to all foreign tools of a run."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, server: str, tool: str) -> str:
        """Return `mcp__<server>__<tool>` with characters and a length that every provider accepts."""
        wanted = re.sub(r"[^a-zA-Z0-9_-]", "_", f"mcp__{server}__{tool}")
        name, number = wanted[:LONGEST_NAME], 1
        while name in self._given:
            number += 1
            end = f"_{number}"
            name = wanted[: LONGEST_NAME - len(end)] + end
        self._given.add(name)
        return name


def listed(config: ServerConfig, tools: Sequence[Tool], names: Names, problems: list[str]) -> Iterator[Listed]:
    """Yield the selected tools of a server in its order; `problems` gets a sentence for each omission."""
    wanted = [tool for tool in tools if config.tools is None or tool.name in config.tools]
    for missing in sorted(set(config.tools or ()) - {tool.name for tool in tools}):
        problems.append(f"MCP server {config.name!r} has no tool {missing[:_SAID]!r}")
    if len(wanted) > MOST_TOOLS:
        problems.append(f"MCP server {config.name!r} has too many tools; only the first {MOST_TOOLS} are available")
    for tool in wanted[:MOST_TOOLS]:
        if why := _wrong_schema(tool.input_schema):
            problems.append(f"MCP server {config.name!r}: its tool {tool.name[:_SAID]!r} is ignored: {why}")
            continue
        hints = tool.annotations
        reads = bool(hints and hints.read_only_hint)
        yield Listed(tool.name, _spec(config.name, tool, names, parallel=reads), reads)


def _spec(server: str, tool: Tool, names: Names, *, parallel: bool) -> ToolSpec:
    description = tool.description or tool.title or f"{tool.name} of the MCP server {server}"
    # Some providers refuse an object without a list of its properties.
    schema = {"properties": {}, **_with_items(tool.input_schema)}
    return ToolSpec(names.give(server, tool.name), description[:LONGEST_DESCRIPTION], schema, parallel)


def _with_items(schema: Any) -> Any:
    """The schema with `items` for each array that has none: some providers refuse the whole request without them."""
    if isinstance(schema, list):
        return [_with_items(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {name: value if name in _VALUES else _with_items(value) for name, value in schema.items()}
    kind = whole.get("type")
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return {**whole, "items": {}} if is_array and not {"items", "prefixItems"} & whole.keys() else whole


def _wrong_schema(schema: dict[str, Any]) -> str:
    """Why no provider would accept this schema; empty if one may. A refused one would end the run."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # few runs have servers
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]

    if schema.get("type") != "object":
        return "its arguments are not an object"
    try:
        if len(json.dumps(schema, allow_nan=False)) > LARGEST_SCHEMA:
            return f"the schema of its arguments is larger than {LARGEST_SCHEMA:,} bytes"
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"the schema of its arguments is invalid: {shortened(error.message, _SAID)}"
    except (ValueError, RecursionError) as error:
        return f"the schema of its arguments cannot be sent: {shortened(str(error), _SAID)}"
    return ""
