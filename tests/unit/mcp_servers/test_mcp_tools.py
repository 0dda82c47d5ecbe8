"""Under which names tools of MCP servers are told of, and how their answers become text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult, Tool

from drone.agent.values import ToolSpec
from drone.mcp_servers import ServerConfig
from drone.mcp_servers.listing import LARGEST_SCHEMA, LONGEST_DESCRIPTION, Names, listed
from drone.mcp_servers.results import result_of


def shown(tmp_path: Path, *content: dict[str, Any], **more: Any) -> str:
    return result_of(CallToolResult.model_validate({"content": content, **more}), tmp_path / "log").output


def test_names_have_letters_that_every_provider_takes_and_those_that_become_alike_are_told_apart() -> None:
    names = Names()
    given = [names.give("a", tool) for tool in ("x.y", "x/y", "x y")] + [names.give("s" * 80, "t") for _ in range(2)]
    assert given[:3] == ["mcp__a__x_y", "mcp__a__x_y_2", "mcp__a__x_y_3"]
    assert given[3:] == ["mcp__" + "s" * 59, "mcp__" + "s" * 57 + "_2"]


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), max_size=30))
def test_names_are_distinct_and_fit_whatever_servers_call_their_tools(pairs: list[tuple[str, str]]) -> None:
    names = Names()

    given = [names.give(server, tool) for server, tool in pairs]

    assert len(set(given)) == len(given)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in given)


def test_texts_are_joined_and_what_is_no_text_is_named_by_kind_and_size(tmp_path: Path) -> None:
    text = {"type": "text", "text": "a"}
    content = {"content": [text, {**text, "text": "b"}], "isError": True}
    result = result_of(CallToolResult.model_validate(content), tmp_path / "log")
    assert (result.output, result.is_error, result.log) == ("a\nb", True, None)
    assert shown(tmp_path, structuredContent=[1, "é"]) == '[\n 1,\n "é"\n]'
    assert shown(tmp_path, text, structuredContent={"sum": 3}) == "a"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"type": "image", "mimeType": "image/png", "data": "A" * 16460}, "[image/png, 12,345 bytes, not shown]"),
        ({"type": "audio", "mimeType": "audio/wav", "data": ""}, "[audio/wav, 0 bytes, not shown]"),
        ({"type": "resource_link", "name": "n" * 900, "uri": "x:y"}, f"[link to {'n' * 200}, x:y, not shown]"),
        ({"type": "resource", "resource": {"uri": "x:y", "blob": "QQ=="}}, "[x:y, bytes, 1 bytes, not shown]"),
        ({"type": "resource", "resource": {"uri": "x:y", "text": "all of it"}}, "[x:y]\nall of it"),
    ]
    assert [(block, got) for block, text in cases if (got := shown(tmp_path, block)) != text] == []


ARRAY = {"type": "array"}
COMPLETED = {
    "an array without items": ({"a": ARRAY}, {"a": {**ARRAY, "items": {}}}),
    "within an array": ({"a": {**ARRAY, "items": ARRAY}}, {"a": {**ARRAY, "items": {**ARRAY, "items": {}}}}),
    "or null": ({"a": {"type": ["array", "null"]}}, {"a": {"type": ["array", "null"], "items": {}}}),
    "one of several": ({"a": {"anyOf": [ARRAY, {}]}}, {"a": {"anyOf": [{**ARRAY, "items": {}}, {}]}}),
}
UNCHANGED: list[dict[str, Any]] = [
    {"a": {**ARRAY, "prefixItems": [{}]}},
    {"a": {"default": ARRAY, "enum": [ARRAY]}},
    {"type": {"type": "string"}},
    {"a": True},
]
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
BROKEN: list[tuple[dict[str, Any], str]] = [
    (ARRAY, "are not an object"),
    ({}, "are not an object"),
    ({**OBJECT, "properties": None}, "is invalid"),
    ({**OBJECT, "required": "a"}, "is invalid"),
    ({**OBJECT, "properties": {"a": {"type": "text"}}}, "is invalid"),
    ({**OBJECT, "properties": {"a": {"type": "string", "pattern": 7}}}, "is invalid"),
    ({**OBJECT, "properties": {"a": {"minimum": float("nan")}}}, "cannot be sent"),
    ({**OBJECT, "properties": {"a": {"enum": []}}, "x": "y" * LARGEST_SCHEMA}, "is larger than"),
]


def told(*tools: Tool, **entry: Any) -> tuple[list[ToolSpec], list[str]]:
    """What the model is told of a server's tools, and the problems."""
    problems: list[str] = []
    config = ServerConfig.model_validate({"name": "b", "owners": True, "command": "x", **entry})
    return [each.spec for each in listed(config, tools, Names(), problems)], problems


def test_a_schema_that_providers_refuse_is_completed_and_a_broken_one_leaves_its_tool_out() -> None:
    cases = [*COMPLETED.values(), *((each, each) for each in UNCHANGED)]
    for properties, expected in cases:
        specs, problems = told(Tool(name="t", input_schema={**OBJECT, "properties": properties}))
        assert ([each.parameters for each in specs], problems) == ([{**OBJECT, "properties": expected}], [])
    for schema, words in BROKEN:
        specs, (problem,) = told(Tool(name="t", input_schema=schema))
        assert (specs, words in problem, len(problem) < 200) == ([], True, True), (schema, problem)


def test_tools_are_told_of_in_the_order_of_their_server_and_the_chosen_or_the_first_ones_alone() -> None:
    tools = [Tool(name=each, input_schema={"type": "object"}) for each in ("z", "a", "c")]
    specs, problems = told(*tools, tools=["a", "z", "d"])
    assert [each.name for each in specs] == ["mcp__b__z", "mcp__b__a"]
    assert (specs[0].description, specs[0].parameters) == ("z of the MCP server b", OBJECT)
    assert problems == ["MCP server 'b' has no tool 'd'"]
    (long,), _ = told(Tool(name="long", description="x" * 5_000, input_schema=OBJECT))
    assert len(long.description) == LONGEST_DESCRIPTION
